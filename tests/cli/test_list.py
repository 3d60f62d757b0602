"""`fedrela list [algorithms|models|sources|methods|tables]`: everything that is registered, as it is registered."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from fedrela.algorithms import ALGORITHMS
from fedrela.data.sources import SOURCES
from fedrela.experiment import registries
from fedrela.models import MODELS, ModelSpec, build, model_options
from fedrela.options import options_of
from fedrela.reproduction.paper_table import paper_tables

WHAT = ("algorithms", "models", "sources", "methods", "tables")


def rows(text: str) -> list[str]:
    """Return the lines of all tables, wrapped cells and all, with single blanks."""
    return [re.sub(r" +", " ", line) for line in text.splitlines()]


def test_every_algorithm_with_every_parameter(run):
    done = run("list", "algorithms")
    assert (done.code, done.err) == (0, "")
    lines = rows(done.out)
    for name, kind in ALGORITHMS.items():
        assert any(line.startswith(f"{name} {kind.description[:8]}") for line in lines)
        if not options_of(kind.Params):
            assert name not in lines
            continue
        own = lines[lines.index(name) + 2 :]
        own = own[: own.index("")]
        starts = [f"{each.name} {each.symbol or '-'} " for each in options_of(kind.Params)]
        assert all(any(line.startswith(start) for line in own) for start in starts)
    assert "mu mu 0.01 a number >= 0 weight of the proximal term" in lines[lines.index("fedprox") :]


def test_what_leaves_a_client_is_what_the_algorithm_says():
    for name, kind in ALGORITHMS.items():
        sent = " ".join(registries.sent_besides_weights(name))
        assert all(array in sent for array in kind.uploads if array != "weights")
        for exchange in kind().exchanges():
            assert all(array in sent for array in kind().answers(exchange.name, registries.ANY_SIZES))
    assert registries.sent_besides_weights("fedavg") == []


def test_every_model_with_its_options_and_size(run):
    done = run("list", "models")
    assert (done.code, done.err) == (0, "")
    lines = {line.split(" ")[0]: line for line in rows(done.out)}
    for name in MODELS:
        assert all(f"{option} = " in lines[name] for option in model_options(name))
    assert lines["mlp"] == "mlp hidden = [200] 616,610 multilayer perceptron"
    assert lines["simple_cnn"] == "simple_cnn - 62,006 LeNet-like CNN of NIID-Bench"
    assert lines["resnet8"] == 'resnet8 width = 64, norm = "batch" 1,227,594 ResNet-8 for small images'
    small = build("resnet20", registries.COLOUR_IMAGE, registries.TEN_CLASSES)
    assert f" {sum(p.numel() for p in small.parameters()):,} " in lines["resnet20"]


def test_a_model_that_takes_no_such_pictures_has_no_size(monkeypatch):
    def needs_tables(shape):
        from fedrela.errors import ArgumentError

        raise ArgumentError("input_shape: a table is needed")

    monkeypatch.setitem(MODELS, "tables_only", ModelSpec(needs_tables, "for tables alone"))
    assert registries.model_size("tables_only") is None


def test_every_source_with_its_options(run):
    done = run("list", "sources")
    assert (done.code, done.err) == (0, "")
    first = {line.split(" ")[0] for line in done.out.splitlines() if line}
    assert set(SOURCES) <= first
    words = set(re.findall(r"\w+", done.out))
    assert all(option in words for name in SOURCES for option in SOURCES[name].options)


def test_every_table_of_the_paper(run):
    done = run("list", "tables")
    assert (done.code, done.err) == (0, "")
    lines = rows(done.out)
    for table in paper_tables():
        marks = sum(bool(entry.doubtful) for entry in table.cells)
        assert any(line.startswith(f"{table.label} {len(table.cells)} {marks} ") for line in lines)


def test_without_a_word_all_of_them_are_listed(run):
    assert run("list").out == "\n".join(run("list", what).out for what in WHAT)


@pytest.mark.parametrize("what", ["sources", "--help"])
def test_sources_and_help_need_no_torch(what):
    code = (
        "import sys; sys.modules['torch'] = None; sys.argv = ['fedrela', 'list', sys.argv[1]]\n"
        "from fedrela.cli.main import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code, what], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "sources" in done.stdout or "digits" in done.stdout


def test_an_unknown_word(run):
    done = run("list", "papers")
    assert done.code == 2
    assert done.line().startswith(f"list: expected one of {', '.join(WHAT)}, got 'papers'")
