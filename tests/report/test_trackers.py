"""MLflow and Weights & Biases get what TensorBoard gets; without the packages there is one line that says so."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from fedrela.errors import ArgumentError
from fedrela.report.tensorboard import scalars
from fedrela.report.trackers import open_trackers
from fedrela.runfolder import RunFolder
from helpers.environments import run_in
from helpers.small_runs import small

WRITE = """
import sys
from pathlib import Path
from fedrela.report.trackers import write_trackers
from fedrela.runfolder import RunFolder
write_trackers(RunFolder.open(sys.argv[1]), {mlflow}, {wandb})
"""


@pytest.mark.parametrize(("mlflow", "wandb", "name"), [("sqlite:///a.db", None, "mlflow"), (None, Path("b"), "wandb")])
def test_a_package_that_is_missing_is_named_before_anything_runs(mlflow, wandb, name, tmp_path):
    if importlib.util.find_spec(name):
        pytest.skip(f"{name} is installed")
    with pytest.raises(ArgumentError, match=f"^{name}: is not installed; run `pip install {name}`$"):
        open_trackers(mlflow, wandb, "run")
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory, request) -> RunFolder:
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery, in environments of their own")
    from fedrela.experiment import run

    out = tmp_path_factory.mktemp("tracked") / "run"
    run({key: value for key, value in small().items() if key != "compare"}, out=out, workers=1)
    return RunFolder.open(out)


def test_mlflow_has_every_round(folder, tmp_path):
    uri = f"sqlite:///{tmp_path / 'runs.db'}"
    read = """
import json, mlflow, sys
client = mlflow.MlflowClient(tracking_uri=sys.argv[1])
run = client.search_runs([client.get_experiment_by_name("fedrela").experiment_id])[0]
metrics = {key: [m.value for m in client.get_metric_history(run.info.run_id, key)] for key in run.data.metrics}
print(json.dumps([run.info.status, run.info.run_name, metrics]))
"""
    run_in("mlflow", ["mlflow"], WRITE.format(mlflow=repr(uri), wandb=None), folder.path)
    status, name, metrics = json.loads(run_in("mlflow", [], read, uri).splitlines()[-1])
    assert (status, name) == ("FINISHED", "run")
    assert metrics["accuracy/overall"] == pytest.approx([scalars(r)["accuracy/overall"] for r in folder.rounds()])


def test_wandb_writes_an_offline_run(folder, tmp_path):
    script = WRITE.format(mlflow=None, wandb=f"Path({str(tmp_path / 'tracked')!r})")
    run_in("wandb", ["wandb"], script, folder.path)
    assert list((tmp_path / "tracked").rglob("offline-run-*/*.wandb"))
