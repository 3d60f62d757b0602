"""Parts of a user's own, by name and as objects: in runs, comparisons and sweeps, resumed, and wrong."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path
from shutil import rmtree

import numpy as np
import pytest

import fedrela
from fedrela import Ledger, experiment
from fedrela.algorithms import find_algorithm
from fedrela.data.sources import load
from fedrela.errors import ArgumentError, DataError, IntegrityError
from fedrela.experiment import runner
from fedrela.experiment.load import config_toml, parse_config
from fedrela.experiment.overlay import overlay
from fedrela.models import build
from fedrela.runfolder import RunFolder
from fedrela.runfolder.json_records import json_with_digests
from fedrela.testing import check_algorithm, check_reallocator
from helpers import own_parts

OWN = "helpers.own_parts"
TOML = f"""
[data]
source = "{OWN}:load"
options = {{ samples = 80 }}
partition = {{ kind = "iid", clients = 3 }}
[model]
name = "{OWN}:make"
width = 5
[algorithm]
name = "{OWN}:Mine"
share = 0.25
[train]
rounds = 3
epochs = 1
[relabel]
method = "{OWN}:Swap"
params = {{ every = 2 }}
start = 2
tau = 0.1
"""
OBJECTS = {
    "data": {"source": own_parts.load, "options": {"samples": 80}, "partition": {"kind": "iid", "clients": 3}},
    "model": {"name": own_parts.make, "width": 5},
    "algorithm": {"name": own_parts.Mine, "share": 0.25},
    "train": {"rounds": 3, "epochs": 1},
    "relabel": {"method": own_parts.Swap, "params": {"every": 2}, "start": 2, "tau": 0.1},
}


def test_the_parts_themselves_are_sound():
    check_algorithm(own_parts.Mine, inputs="tables")
    check_reallocator(own_parts.Swap)


def test_a_run_by_name_and_by_objects_is_the_same(tmp_path):
    named, given = parse_config(TOML), parse_config(OBJECTS)
    assert config_toml(named) == config_toml(given) == config_toml(parse_config(config_toml(named)))
    one = experiment.run(named, out=tmp_path / "one", workers=1)
    two = experiment.run(OBJECTS, out=tmp_path / "two", workers=2)
    assert one.record == two.record
    assert one.moved > 0
    folder = RunFolder.open(tmp_path / "one")
    assert folder.manifest["algorithm"]["params"] == {"share": 0.25}
    ledger = Ledger.load(min(tmp_path.glob("one/ledgers/**/*.*")))
    assert (ledger.options["method"], ledger.options["params"]) == (f"{OWN}:Swap", {"every": 2})


def test_a_run_is_resumed_by_the_names_in_its_folder(tmp_path):
    saved_often = {**OBJECTS, "engine": {"checkpoint_every": 1}}
    whole = experiment.run(saved_often, out=tmp_path / "whole", workers=1)
    with experiment.begin(saved_often, out=tmp_path / "cut", workers=1) as recorded:
        next(iter(recorded.rounds()))
    with runner.resume(tmp_path / "cut", workers=1) as recorded:
        again = recorded.complete()
    assert again.record["weights_sha256"] == whole.record["weights_sha256"]


def test_own_baselines_are_compared(tmp_path):
    compare = {"seeds": 1, "baselines": ["fedavg", own_parts.Mine], "arms": ["baseline", "fedrela"]}
    experiment.compare(OBJECTS | {"compare": compare}, out=tmp_path / "grid", workers=1)
    names = sorted(path.name for path in (tmp_path / "grid" / "runs").iterdir())
    assert sum(name.startswith(f"{OWN}.Mine-") for name in names) == 2
    assert not any(":" in name for name in names)


@pytest.fixture
def rewritten(tmp_path, monkeypatch):
    """A function that writes the parts as a module ``mine.parts``, with more lines at the end, as after a restart."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "__init__.py").write_text("from mine.parts import Swap\n")

    def write(more=""):
        (tmp_path / "mine" / "parts.py").write_text(Path(own_parts.__file__).read_text() + more)
        for name in ("mine", "mine.parts"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        importlib.invalidate_caches()

    write()
    return write


PARTS = {
    "algorithm": {"algorithm": {"name": "mine.parts:Mine"}},
    "model": {"model": {"name": "mine.parts:make"}},
    "source": {"data": {"source": "mine.parts:load", "partition": {"kind": "iid", "clients": 3}}},
    "method": {"relabel": {"method": "mine:Swap", "start": 2}},
}
HERE = {"train": {"rounds": 3, "epochs": 1}, "relabel": {"start": 2}, "engine": {"checkpoint_every": 1}}
CHANGED = r"your own code in mine\.parts has changed since the run started; restore it to continue, or begin in a new"


@pytest.mark.parametrize("part", PARTS)
def test_runs_of_own_code_that_changed_since_are_not_reused(tmp_path, rewritten, part):
    grid = {"workers": 1, "out": tmp_path / "grid"}
    arms = {"seeds": 1, "arms": ["baseline", "fedrela"]}
    config = HERE | PARTS[part] | {"compare": arms}
    found = experiment.compare(config, **grid).record
    assert experiment.compare(config, **grid).record == found
    rewritten("# another step\n")
    with pytest.raises(IntegrityError, match=CHANGED):
        experiment.compare(config, **grid)
    with pytest.raises(IntegrityError, match=CHANGED):
        experiment.compare(config | {"compare": arms | {"seeds": 2}}, **grid)
    rewritten()
    assert experiment.compare(config, **grid).record == found


def test_shared_rounds_of_own_code_that_changed_since_are_not_reused(tmp_path, rewritten):
    config = {**HERE, **PARTS["algorithm"], "sweep": {"relabel.tau": [0.1, 0.2]}}
    experiment.sweep(config, out=tmp_path / "grid", workers=1)
    rmtree(tmp_path / "grid" / "runs")
    rewritten("# another step\n")
    with pytest.raises(IntegrityError, match=rf"prefixes.*: {CHANGED}"):
        experiment.sweep(config, out=tmp_path / "grid", workers=1)


def test_a_run_of_own_code_that_changed_since_is_not_resumed(tmp_path, rewritten):
    with experiment.begin({**HERE, **PARTS["algorithm"]}, out=tmp_path / "run", workers=1) as recorded:
        next(iter(recorded.rounds()))
    with (tmp_path / "mine" / "parts.py").open("a") as file:
        file.write("# not what this process has imported\n")
    with runner.resume(tmp_path / "run", workers=1) as recorded:
        next(iter(recorded.rounds()))
    rewritten("# another step\n")
    with pytest.raises(IntegrityError, match=CHANGED), runner.resume(tmp_path / "run", workers=1):
        pass


def test_a_run_from_before_code_had_digests_is_read_and_resumed(tmp_path, rewritten):
    with experiment.begin({**HERE, **PARTS["algorithm"]}, out=tmp_path / "run", workers=1) as recorded:
        next(iter(recorded.rounds()))
        record = recorded.folder.manifest
    assert list(record.pop("code")) == ["mine.parts"]
    manifest = tmp_path / "run" / "manifest.json"
    manifest.write_bytes(json_with_digests(record, json.loads(manifest.read_text())["files"]))
    rmtree(tmp_path / "run" / "checkpoint")  # it names the manifest's digest
    rewritten("# another step\n")
    with runner.resume(tmp_path / "run", workers=1) as recorded:
        assert recorded.complete().rounds == 3


def test_runs_without_own_code_have_no_digests_of_it(tmp_path):
    experiment.run(HERE, out=tmp_path / "run", workers=1)
    assert "code" not in RunFolder.open(tmp_path / "run").manifest


def test_methods_are_swept():
    config = OBJECTS | {"sweep": {"relabel.method": ["fedrela", own_parts.Swap], "algorithm.name": [own_parts.Mine]}}
    assert parse_config(config).sweep["relabel.method"] == ["fedrela", f"{OWN}:Swap"]
    assert overlay(parse_config(OBJECTS), {"relabel": {"method": "margin"}}).relabel.params is None


def test_parameters_of_a_method_change_what_moves():
    Q, y = np.full((12, 2), 0.5), np.repeat([0, 1], [10, 2])
    named = [fedrela.relabel(Q, y, tau=1.0, method=own_parts.Swap, params={"every": k}).moved.size for k in (1, 5)]
    assert named == [10, 2]
    assert fedrela.relabel(Q, y, tau=1.0, method=own_parts.Swap(every=5)).moved.size == 2
    assert fedrela.preview(Q, y, taus=(1.0,), method=own_parts.Swap, params={"every": 5}).flow.sum() == 2


@pytest.mark.parametrize(
    ("method", "params", "message"),
    [
        (own_parts.Swap, {"evry": 2}, "params.evry: unknown parameter; nearest: every"),
        (own_parts.Swap, {"every": 0}, "params.every: expected an integer >= 1, got 0"),
        (own_parts.Swap(), {"every": 2}, "params: the method is an object with its own parameters; leave these out"),
        ("fedrela", {"every": 2}, "params.every: unknown parameter; method 'FedReLa' has none"),
        ("fedrela", 3, "params: expected a table of the method's own parameters, got 3"),
    ],
)
def test_wrong_parameters_of_a_method_are_one_line(method, params, message):
    with pytest.raises(ArgumentError) as error:
        fedrela.relabel([[0.5, 0.5]], [0], method=method, params=params)
    assert str(error.value) == message
    if not isinstance(method, own_parts.Swap):
        with pytest.raises(ArgumentError, match=re.escape(f"<config>: relabel.{message}")):
            parse_config({"relabel": {"method": method, "params": params}})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("raise ValueError('too\\nwide')", "model 'bad_model:make': ValueError: too wide (bad_model.py:2)"),
        ("return 3", "model 'bad_model:make': expected a torch.nn.Module, got int"),
    ],
)
def test_an_error_in_a_model_names_it_and_its_line(body, message, tmp_path, monkeypatch):
    (tmp_path / "bad_model.py").write_text(f"def make(shape, classes):\n    {body}\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "bad_model", raising=False)
    with pytest.raises(ArgumentError) as caught:
        build("bad_model:make", (1, 8, 8), 10)
    assert str(caught.value) == message


def test_a_class_may_be_a_model():
    one, two = (build(f"{OWN}:Net", (2, 3), 4, seed=1).state_dict() for _ in range(2))
    assert all((one[name] == two[name]).all() for name in one)


@pytest.mark.parametrize(
    ("table", "key", "value", "message"),
    [
        ("algorithm", "name", f"{OWN}:Min", f"module '{OWN}' has no 'Min'; nearest: 'Mine'"),
        ("algorithm", "name", f"{OWN}:make", "expected a class derived from fedrela.algorithms.Algorithm, but"),
        ("algorithm", "name", "no_such_package.nets:Mine", "no module 'no_such_package'; is it installed"),
        ("algorithm", "name", "broken_part:Mine", "module 'broken_part' cannot be imported: "),
        ("algorithm", "name", "script_part:Mine", "module 'script_part' cannot be imported: SystemExit: no GPU here"),
        ("algorithm", "name", "os:;x", "expected module:name, such as mypackage.mymodule:MyClass, got 'os:;x'"),
        ("model", "name", f"{OWN}:NOTHING", "expected a function or class that makes a torch.nn.Module, but"),
        ("data", "source", f"{OWN}:Net", "expected a function that returns a Source, but"),
        ("relabel", "method", f"{OWN}:Mine", "expected a re-allocator"),
    ],
)
def test_wrong_names_are_one_line_with_a_place(table, key, value, message, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "broken_part.py").write_text('raise RuntimeError("broken on\\npurpose")\n')
    (tmp_path / "script_part.py").write_text('import sys\n\nsys.exit("no GPU here")\n')
    (tmp_path / "run.toml").write_text(f'[{table}]\n{key} = "{value}"\n')
    with pytest.raises(ArgumentError) as error:
        experiment.run(tmp_path / "run.toml", out=tmp_path / "out")
    assert str(error.value).startswith(f"{tmp_path / 'run.toml'}:2:{len(key) + 4}: {table}.{key}: {message}")
    assert "\n" not in str(error.value)


def test_parts_that_cannot_be_named_or_used():
    def inside(input_shape, num_classes): ...

    with pytest.raises(ArgumentError, match=r"model\.name: .*defined inside a function"):
        parse_config({"model": {"name": inside}})
    with pytest.raises(ArgumentError, match="its option width has no default"):
        parse_config({"model": {"name": own_parts.needy, "width": 3}})
    with pytest.raises(ArgumentError, match=r"algorithm\.share: expected a number > 0 and <= 1"):
        parse_config({"algorithm": {"name": own_parts.Mine, "share": 2.0}})
    with pytest.raises(DataError, match=r"expected it to return fedrela\.data\.sources\.Source, got dict"):
        load(f"{OWN}:wrong_load")
    with pytest.raises(ArgumentError, match="no projection"):
        build(f"{OWN}:make", (3,), 2, projection=4)


def test_installed_packages_offer_parts(tmp_path, monkeypatch):
    """A distribution as pip leaves it: its folder of metadata, on the path."""
    there = tmp_path / "site" / "mine-1.0.dist-info"
    there.mkdir(parents=True)
    (there / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    offered = {"algorithms": "Mine", "models": "make", "sources": "load", "reallocators": "Swap"}
    groups = (f"[fedrela.{group}]\nmine = {OWN}:{part}\n" for group, part in offered.items())
    (there / "entry_points.txt").write_text("\n".join(groups))
    monkeypatch.syspath_prepend(tmp_path / "site")
    short = re.sub(rf'"{OWN}:\w+"', '"mine"', TOML)
    assert short.count('"mine"') == 4
    named, own = (
        experiment.run(parse_config(text), out=tmp_path / str(len(text)), workers=1) for text in (short, TOML)
    )
    assert named.weights_sha256 == own.weights_sha256
    with pytest.raises(ArgumentError, match="nearest: mine"):
        find_algorithm("mime")


def test_reading_a_run_imports_none_of_its_parts(tmp_path):
    experiment.run(parse_config(TOML), out=tmp_path / "run", workers=1)
    code = (
        "import sys; from fedrela.report.writing import write_report; from fedrela.experiment import Result;"
        f"write_report({str(tmp_path / 'run')!r}); Result.load({str(tmp_path / 'run')!r});"
        f"sys.exit('{OWN}' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert f"the method {OWN}:Swap" in (tmp_path / "run" / "report.html").read_text()
