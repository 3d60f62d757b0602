"""`fedrela preview FILE`."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fedrela
from fedrela.text import percent


def rows(done) -> list[list[str]]:
    """The cells of the table, without its heading."""
    lines = done.out.splitlines()
    start = next(place for place, line in enumerate(lines) if line.startswith("tau "))
    table = lines[start + 1 : lines.index("", start)]
    return [re.split(r"\s{2,}", line, maxsplit=3) for line in table]


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_the_table_is_the_libraries(run, clinic, kind):
    done = run("preview", getattr(clinic, kind)())
    assert (done.code, done.err) == (0, "")
    expected = fedrela.preview(clinic.posterior, clinic.labels)
    wanted = [[f"{r['tau']:g}", f"{r['moves']:.1f}", percent(r["share"], 2)] for r in expected.rows()]
    assert [row[:3] for row in rows(done)] == wanted
    assert (
        f"agreement of the model with the labels {percent(expected.agreement)}, kappa {expected.kappa:.2f}" in done.out
    )
    assert "190 samples, 3 classes" in done.out
    assert clinic.files() == {f"clinic.{kind}"}


def test_chosen_taus_and_top_classes(run, clinic):
    done = run("preview", clinic.csv(), "--tau", "0.2", "--tau", "0.02")
    assert [row[0] for row in rows(done)] == ["0.2", "0.02"]
    into = fedrela.preview(clinic.posterior, clinic.labels, [0.2]).into[0]
    assert into[2] > into[1] > 0
    assert rows(done)[0][3] == f"rare {into[2]:.1f}, flu {into[1]:.1f}"


def test_many_classes_are_summed_up(run, tmp_path):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(9), np.arange(90, 0, -10))
    np.savez(tmp_path / "many.npz", posterior=rng.dirichlet(np.ones(9), labels.size), labels=labels)
    done = run("preview", tmp_path / "many.npz", "--tau", "0.2")
    assert "more" in rows(done)[0][3]
    assert rows(done)[0][3].count(",") == 3


def test_options_reach_the_library(run, clinic):
    options = {"preset": "official", "target": "argmax", "threshold": "1.5", "normalize": "zscore", "spread": "sample"}
    arguments = [part for name, value in options.items() for part in (f"--{name}", value)]
    done = run("preview", clinic.csv(), "--tau", "0.1", *arguments)
    expected = fedrela.preview(clinic.posterior, clinic.labels, [0.1], **options | {"threshold": 1.5})
    assert rows(done)[0][1] == f"{expected.total[0]:.1f}"


def test_warnings_are_marked(run, clinic):
    path = clinic.npz(posterior=clinic.posterior[:, [1, 2, 0]])
    done = run("preview", path, "--tau", "0.5", "--max-fraction", "0.01")
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if line.startswith("warning: ")]
    assert any("hardly more than chance" in line for line in lines)
    assert any("expected to move than max_fraction 0.01 allows" in line for line in lines)


def test_no_samples_are_no_failure(run, tmp_path):
    path = tmp_path / "empty.csv"
    path.write_text("a,b,label\n")
    done = run("preview", path, "--tau", "0.1")
    assert done.code == 0
    assert rows(done)[0][1:] == ["0.0", "0.00 %", "-"]
    assert "the labels unknown, kappa not defined" in done.out


def test_a_refusal_has_code_3_and_its_line(run, clinic):
    clinic.posterior[41, 1] = np.nan
    done = run("preview", clinic.csv())
    assert done.code == 3
    assert done.line() == f"{clinic.folder}/clinic.csv:43: refused: not finite: row 41: column 1 is nan"
    done = run("preview", clinic.npz())
    assert done.line() == f"{clinic.folder}/clinic.npz: refused: not finite: row 41: column 1 is nan"


@pytest.mark.parametrize("tau", ["5", "-0.1", "nan"])
def test_a_wrong_tau_has_code_2_and_the_hint(run, clinic, tau):
    done = run("preview", clinic.csv(), "--tau", "0.1", "--tau", tau)
    assert done.code == 2
    assert "expected a fraction from 0 to 1, got" in done.line()
    assert ("5 there is 0.05 here" in done.line()) == (tau == "5")
