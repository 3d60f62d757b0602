"""Flower's older interface, as most public code is written: the example of the docs as it is."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")
pytest.importorskip("ray", reason="the extra flower-sim is not installed")

from flwr.app import Context, Message, RecordDict
from flwr.common import EvaluateIns, FitIns, ndarrays_to_parameters
from flwr.compat.common.recorddict_compat import evaluateins_to_recorddict, fitins_to_recorddict, recorddict_to_fitres
from flwr.server.strategy import FedAvg
from flwr.supercore.task_identity import TaskIdentity

from fedrela.plugin import LabelStore

torch.set_num_threads(1)
EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "flower-plugin" / "numpy_client.py"


def rounds(names, contexts, number):
    """Let clients answer the messages that Flower's older server sends, and its strategy average their replies."""
    strategy = FedAvg()
    arrays = ndarrays_to_parameters([value.numpy() for value in names["Net"]().state_dict().values()])
    for round in range(1, number + 1):
        results = []
        for node, context in contexts.items():
            content = fitins_to_recorddict(FitIns(arrays, {}), keep_input=True)
            message = Message(content, dst_node_id=node, message_type="train", group_id=str(round))
            reply = names["app"](message, context)
            results.append((None, recorddict_to_fitres(reply.content, keep_input=True)))
        arrays, _ = strategy.aggregate_fit(round, results, [])
        evaluate = evaluateins_to_recorddict(EvaluateIns(arrays, {}), keep_input=True)
        names["app"](Message(evaluate, dst_node_id=node, message_type="evaluate", group_id=str(round)), context)


def ledgers(folder, experiment, clients):
    return [LabelStore(folder, experiment, str(client)).passes() for client in range(clients)]


def test_the_example_re_labels_without_a_change_at_the_server(tmp_path, caplog):
    names = runpy.run_path(str(EXAMPLE))
    TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
    contexts = {
        10 + client: Context(
            1, 10 + client, {"partition-id": client, "num-partitions": 4, "state-dir": str(tmp_path)}, RecordDict(),
            {},
        )
        for client in range(2)
    }  # fmt: skip
    rounds(names, contexts, 5)
    made = ledgers(tmp_path, "run-1", 2)
    assert [[ledger.options["round"] for ledger in passes] for passes in made] == [[4]] * 2
    assert sum(len(passes[0]) for passes in made) > 0
    assert all(passes[0].provenance.agreement > 0.5 for passes in made)  # arrays were loaded in the right order
    loader, _ = names["load_data"](0, 4)
    assert np.array_equal(made[0][0].original, [int(y) for _, y in loader.dataset])
    assert all("fedrela.labels" in context.state for context in contexts.values())
    assert not any("does not use the new labels" in record.message for record in caplog.records)


def test_the_example_in_flowers_simulator(request, tmp_path):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery: the simulator starts in 20 s")
    environment = os.environ | {
        "XDG_DATA_HOME": str(tmp_path), "FLWR_HOME": str(tmp_path / "flwr"), "FLWR_TELEMETRY_ENABLED": "0",
        "FLWR_DISABLE_UPDATE_CHECK": "1", "RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    done = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    (experiment,) = (tmp_path / "fedrela" / "labels").iterdir()
    made = ledgers(experiment.parent, experiment.name, 4)
    assert [[ledger.options["round"] for ledger in passes] for passes in made] == [[4]] * 4
    assert sum(len(passes[0]) for passes in made) > 0


def test_the_docs_show_the_lines_of_the_example():
    page = (EXAMPLE.parent.parent.parent / "docs" / "how-to" / "plugin.md").read_text()
    shown = page.split("### With a `NumPyClient`")[1].split("```python\n")[1].split("```")[0]
    lines = EXAMPLE.read_text().splitlines()
    assert [line for line in shown.splitlines() if line not in lines] == []
