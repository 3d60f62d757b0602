"""`fedrela theory`: numbers and figures of the paper's boundaries, as printed and corrected."""

from __future__ import annotations

from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "theory.md"


def test_the_page_on_the_theory_shows_what_the_command_prints(run, tmp_path):
    done = run("theory", "--out", tmp_path / "new")
    assert (done.code, done.err) == (0, "")
    numbers, figures = done.out.split("figure  ", 1)
    assert numbers.rstrip() in PAGE.read_text()
    assert figures == f"{tmp_path}/new/boundaries.svg\nfigure  {tmp_path}/new/posteriors.svg\n"
    assert {path.name for path in (tmp_path / "new").iterdir()} == {"boundaries.svg", "posteriors.svg"}


def test_same_arguments_same_bytes_and_other_formats(run, tmp_path):
    for folder in ("one", "two"):
        assert run("theory", "--out", tmp_path / folder, "--draws", 2, "--format", "png", "--rho", 0).code == 0
    for name in ("boundaries.png", "posteriors.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_figures_are_overwritten_on_request_only(run, tmp_path):
    (tmp_path / "posteriors.svg").write_text("mine")
    arguments = ("theory", "--out", tmp_path, "--draws", 2)
    done = run(*arguments)
    assert done.code == 2
    wanted = f"{tmp_path}/posteriors.svg: exists already; --force overwrites it, --out chooses another folder"
    assert done.line() == wanted
    assert [path.name for path in tmp_path.iterdir()] == ["posteriors.svg"]
    assert (tmp_path / "posteriors.svg").read_text() == "mine"
    assert run(*arguments, "--force").code == 0
    assert (tmp_path / "posteriors.svg").read_text() != "mine"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("--minority", "0"), "--minority: expected a share from one sample to 0.5, got 0"),
        (("--minority", "nan"), "--minority: expected a share from one sample to 0.5, got nan"),
        (("--alpha", "nan"), "--alpha: expected a number, got nan"),
        (("--format", "gif"), "format: expected one of svg, png, pdf, got 'gif'"),
        (
            ("--rho", "0.5"),
            "Invalid value for '--rho': 0.5 is not in the range 0<=x<=0.49. See 'fedrela theory --help'.",
        ),
    ],
)
def test_wrong_arguments_are_one_line_and_write_nothing(run, tmp_path, arguments, line):
    done = run("theory", "--out", tmp_path / "new", *arguments)
    assert (done.code, done.line()) == (2, line)
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_made(run, tmp_path):
    (tmp_path / "file").write_text("")
    done = run("theory", "--out", tmp_path / "file", "--draws", 2)
    assert done.code == 2
    assert "boundaries.svg: cannot be written" in done.line()
