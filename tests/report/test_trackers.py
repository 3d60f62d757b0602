"""MLflow and Weights & Biases get what TensorBoard gets; without the packages there is one line that says so."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from fedrela.errors import ArgumentError
from fedrela.experiment.toml.writer import toml_text
from fedrela.report.tensorboard import scalars
from fedrela.report.trackers import open_trackers
from fedrela.runfolder import RunFolder
from helpers.environments import run_in
from helpers.small_runs import small

FEDRELA = "import sys; from fedrela.cli.main import main; sys.exit(main())"
READ_MLFLOW = """
import json, mlflow, sys
client = mlflow.MlflowClient(tracking_uri=sys.argv[1])
[run] = client.search_runs([client.get_experiment_by_name("fedrela").experiment_id])
history = {key: client.get_metric_history(run.info.run_id, key) for key in run.data.metrics}
points = {key: [(m.step, m.value) for m in sorted(found, key=lambda m: m.step)] for key, found in history.items()}
print(json.dumps([run.info.status, run.info.run_name, points]))
"""
READ_WANDB = """
import json, struct, sys
from pathlib import Path
from wandb.proto import wandb_internal_pb2
data, place, parts, points, BLOCK = Path(sys.argv[1]).read_bytes(), 7, b"", {}, 32768  # a log as LevelDB writes it
while place + 7 <= len(data):
    if (left := BLOCK - place % BLOCK) < 7:
        place += left
        continue
    _, length, kind = struct.unpack_from("<IHB", data, place)
    parts, place = parts + data[place + 7 : place + 7 + length], place + 7 + length
    if kind in (1, 4):  # whole, or the last part
        record, parts = wandb_internal_pb2.Record.FromString(parts), b""
        found = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in record.history.item}
        for key in found:
            if not key.startswith("_"):
                points.setdefault(key, []).append((found["_step"], found[key]))
print(json.dumps(points))
"""


@pytest.mark.parametrize(("mlflow", "wandb", "name"), [("sqlite:///a.db", None, "mlflow"), (None, Path("b"), "wandb")])
def test_a_package_that_is_missing_is_named_before_anything_runs(mlflow, wandb, name, tmp_path):
    if importlib.util.find_spec(name):
        pytest.skip(f"{name} is installed")
    with pytest.raises(ArgumentError, match=f"^{name}: is not installed; run `pip install {name}`$"):
        open_trackers(mlflow, wandb, "run")
    assert list(tmp_path.iterdir()) == []


def logged(package: str, verb: str, folder: Path, *options: object) -> dict[str, list[list[float]]]:
    """Run a configuration, log it meanwhile or afterwards, and return the points of every curve as they should be."""
    config, out = folder / "small.toml", folder / "there"
    config.write_text(toml_text({key: value for key, value in small().items() if key != "compare"}))
    if verb == "run":
        run_in(package, [package], FEDRELA, "run", config, "--out", out, *options)
    else:
        run_in(package, [package], FEDRELA, "run", config, "--out", out)
        run_in(package, [package], FEDRELA, "report", out, *options)
    points: dict[str, list[list[float]]] = {}
    for record in RunFolder.open(out).rounds():
        for key, value in scalars(record).items():
            points.setdefault(key, []).append([record["round"], value])
    assert len(points["accuracy/overall"]) == 6
    return points


@pytest.fixture(autouse=True)
def _nightly(request):
    if "verb" in request.fixturenames and not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in environments of their own")


@pytest.mark.parametrize("verb", ["run", "report"])
def test_mlflow_has_every_round(verb, tmp_path):
    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    points = logged("mlflow", verb, tmp_path, "--mlflow", uri)
    found = json.loads(run_in("mlflow", ["mlflow"], READ_MLFLOW, uri).splitlines()[-1])
    assert found == ["FINISHED", "there", points]


@pytest.mark.parametrize("verb", ["run", "report"])
def test_wandb_writes_an_offline_run_with_every_round(verb, tmp_path):
    points = logged("wandb", verb, tmp_path, "--wandb", tmp_path / "tracked")
    [file] = (tmp_path / "tracked").rglob("offline-run-*/*.wandb")
    assert json.loads(run_in("wandb", ["wandb"], READ_WANDB, file)) == points
