"""The three examples of private federations, on data of the form that each asks for, and the clinics of the guide."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

pytest.importorskip("flwr", reason="the extra flower is not installed")

from fedrela.experiment import run
from fedrela.experiment.flower_app import serve
from fedrela.experiment.load import config_toml, load_config, parse_config
from fedrela.report.writing import write_report
from helpers.flower_federations import assert_equal
from helpers.private_federations import federate_privately, private_grid

torch.set_num_threads(1)
EXAMPLES = Path(__file__).parents[2] / "examples" / "federate"
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "federate.md"
MONTHS = [f"PAY_{i}" for i in (0, 2, 3, 4, 5, 6)]
SUMS = [f"{what}_AMT{i}" for what in ("BILL", "PAY") for i in range(1, 7)]
CREDIT = ["ID", "LIMIT_BAL", "SEX", "EDUCATION", "MARRIAGE", "AGE", *MONTHS, *SUMS, "default.payment.next.month"]


def banks(folder):
    """Write a table with the columns of UCI's, and have the example's script turn it into that of three banks."""
    rng = np.random.default_rng(1)
    rows = [",".join(CREDIT)]
    for i in range(240):
        limit, late = 10_000 * (1 + i % 40), int(rng.random() < 0.3)
        codes = [i, limit, 1 + i % 2, 1 + i % 4, 1 + i % 3, 21 + i % 50]
        rows.append(",".join(map(str, [*codes, *rng.integers(-1, 3, 6), *rng.integers(0, limit, 12), late])))
    (folder / "uci.csv").write_text("\n".join(rows))
    command = [sys.executable, EXAMPLES / "credit.py", folder / "uci.csv", folder / "banks.csv"]
    subprocess.run(list(map(str, command)), check=True, timeout=60)
    return {"root": str(folder / "banks.csv")}


def cells(folder):
    """Write cells of twelve kinds from eight smears."""
    rng, y = np.random.default_rng(2), np.arange(192) % 12
    x = rng.integers(0, 255, (192, 3, 32, 32), np.uint8)
    names = np.array([f"kind {c}" for c in range(12)])
    np.savez(
        folder / "cells.npz", x_train=x, y_train=y, x_test=x[:24], y_test=y[:24], class_names=names,
        client_train=np.arange(192) // 24,
    )  # fmt: skip
    return {"root": str(folder / "cells.npz")}


def clinic(folder, name, text, seed):
    """Write a clinic's table, with its own words for classes, and its file as the guide shows it."""
    rng, words = np.random.default_rng(seed), ["RBC normal", "sickle", "other"]
    rows = ["cell,age,bmi,sex,diagnosis"]
    for i in range(60):
        c = rng.choice(3, p=[0.6, 0.25, 0.15])
        rows.append(f"{i},{rng.normal(40 + 10 * c, 5):.1f},{rng.normal(22 + 4 * c, 2):.1f},{'fm'[i % 2]},{words[c]}")
    home = folder / "nodes" / name
    home.mkdir(parents=True)
    (home / "cells.csv").write_text("\n".join(rows))
    key = home / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(key)], check=True)
    text = (
        text.replace("clinic-north", name).replace("/srv/clinic", str(home)).replace(f"/srv/fedrela/{name}", str(key))
    )
    (home / "node.toml").write_text(text)
    return key.with_suffix(".pub").read_text()


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="ssh-keygen makes keys")
def test_the_clinics_of_the_guide_train_together(tmp_path):
    agreed, own, *_ = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    table = parse_config(agreed.replace("rounds = 30", "rounds = 3")).as_table()
    names = table["federation"]["nodes"]
    table["federation"]["keys"] = {name: clinic(tmp_path, name, own, seed) for seed, name in enumerate(names)}
    (tmp_path / "config.toml").write_text(config_toml(parse_config(table)))
    config, grid = private_grid(tmp_path, tmp_path / "states")
    result = serve(config, grid, out=tmp_path / "run", experiment="trial", timeout=0.2, private=True)
    assert [record["admitted"] for record in result.history()] == [[0, 1, 2]] * 3
    assert result.accuracy["overall"] > 0.5
    assert result.accuracy["per_class"] == [None] * 3, "every clinic tells hits and number alone"
    assert (result.record["confusion"], result.history()[1]["confusion"]) == (None, None)
    assert "Each node keeps its own, and reports only the hits and number" in write_report(result.folder).read_text()


@pytest.mark.parametrize(("name", "nodes"), [("digits", 4), ("credit", 3), ("cells", 4)])
def test_an_example_is_the_same_with_private_nodes(tmp_path, name, nodes):
    table = load_config(EXAMPLES / f"{name}.toml").as_table()
    table["data"] |= {"digits": lambda _: {}, "credit": banks, "cells": cells}[name](tmp_path)
    table["train"]["rounds"] = table["relabel"]["start"] = 2
    config = parse_config(table)
    there, grid = federate_privately(config, tmp_path)
    assert len(grid.nodes) == nodes
    assert_equal(there, run(config, out=tmp_path / "here"))
    asked = any(message.metadata.message_type == "query.statistics" for message in grid.sent)
    assert asked == (name != "cells")  # its constants are in the configuration
