"""What the examples of reference/command-line.md take as given: files, and a run that was done before."""

import runpy
import subprocess
import sys
from pathlib import Path

from fedrela.experiment import run
from fedrela.experiment.flower_app import export_flower
from fedrela.experiment.load import load_config
from fedrela.experiment.split import split

FRESH = True  # examples of different commands write to the same places
TINY = """seed = 1
[data]
source = "digits"
imbalance = { kind = "step", ratio = 10, minority = [0, 1, 2] }
partition = { kind = "dirichlet", clients = 3, alpha = 0.5, min_size = 20 }
validation = 0.2
[train]
rounds = 2
epochs = 1
[relabel]
start = 2
"""


runpy.run_path(str(Path(__file__).with_name("audit.py")))
Path("clinic.csv").write_text(Path("clinic.csv").read_text().replace("patient", "id", 1))
subprocess.run([sys.executable, "-m", "fedrela.cli.main", "relabel", "clinic.csv"], check=True)
for name in ("run.toml", "clinic.toml"):
    Path(name).write_text(TINY)
for name in ("digits", "clinic"):
    run("run.toml", out=f"runs/{name}")
split(load_config("run.toml"), "federation")
Path("config.toml").write_bytes(Path("federation/config.toml").read_bytes())
export_flower(load_config("config.toml"), Path("app"), private=True)
own = "federation/nodes/node-00"
Path("node.toml").write_text(Path(own, "node.toml").read_text().replace("samples.npz", f"{own}/samples.npz"))
