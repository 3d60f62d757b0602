"""A configuration as a Flower app: what is in the folder, and what never gets into it."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest

from fedrela.errors import ArgumentError, DataError
from fedrela.experiment.flower_app import SCRIPTS, export_flower
from fedrela.experiment.load import config_sha256, config_toml, load_config, parse_config
from helpers.small_runs import small

EXAMPLE = Path(__file__).parents[2] / "examples" / "flower-export"
HOSTILE = [
    'a"; touch owned; ".toml', "$(touch owned).toml", "`touch owned`.toml", "${clients}.toml", "a'b\nc.toml",
    "--help.toml", '"""\nraise SystemExit.toml', "].toml", "ünï-✓.toml", ".toml", "x" * 200 + ".toml",
]  # fmt: skip


def files_of(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def project_of(app):
    return tomllib.loads((app / "pyproject.toml").read_text())


def test_what_is_in_an_app(tmp_path):
    app = export_flower(parse_config(small(), name="clinic.toml"), tmp_path / "app")
    assert set(files_of(app)) == {
        "README.md", "environment.sh", "make-trial-keys.sh", "pyproject.toml", "start-superlink.sh",
        "start-supernode.sh", "fedrela_app/__init__.py", "fedrela_app/client_app.py", "fedrela_app/config.toml",
        "fedrela_app/server_app.py",
    }  # fmt: skip
    assert {path.name for path in app.iterdir() if path.is_file() and path.stat().st_mode & 0o111} == set(SCRIPTS)
    project = project_of(app)
    assert project["project"]["name"] == "clinic"
    out = f"runs/clinic-{config_sha256(parse_config(small()))[:12]}"
    assert project["tool"]["flwr"]["app"]["config"] == {"experiment": "clinic", "out": out, "timeout": 600.0}
    assert "with 5 clients" in (app / "README.md").read_text()
    assert not re.search(rb"\$[a-z{]", (app / "README.md").read_bytes().replace(b"$client &", b""))


def test_nothing_is_installed_at_run_time(tmp_path):
    app = export_flower(parse_config(small()), tmp_path / "app")
    assert project_of(app)["project"]["dependencies"] == ["flwr>=1.41,<1.43"]


@pytest.mark.parametrize(
    "tables",
    [
        {},
        {"relabel": {"tau": {"0": 0.1, "default": 0.02}}, "algorithm": {"name": "scaffold"}},
        {"model": {"name": "mlp", "hidden": [8, 4]}, "train": {"deadline": 30.0, "min_clients": 2}},
    ],
)
def test_the_app_has_the_same_configuration(tmp_path, tables):
    config = parse_config(small(**tables))
    there = load_config(export_flower(config, tmp_path / "app") / "fedrela_app" / "config.toml")
    assert there.as_table() == config.as_table()
    assert config_sha256(there) == config_sha256(config)


def test_data_are_named_by_their_place_wherever_the_app_lies(tmp_path):
    rows = "\n".join(f"{row},{row % 3},{row % 2}" for row in range(60))
    (tmp_path / 'it\'s "data".csv').write_text(f"a,b,label\n{rows}\n")
    text = "[data]\nsource = 'csv'\nroot = '''it's \"data\".csv'''\npartition = { kind = 'iid', clients = 2 }\n"
    config = parse_config(text, folder=tmp_path)
    app = export_flower(config, tmp_path / "deep" / "app")
    there = load_config(app / "fedrela_app" / "config.toml")
    assert there.as_table() == config.as_table()
    assert str(tmp_path) in (app / "fedrela_app" / "config.toml").read_text()


@pytest.mark.parametrize("name", HOSTILE)
def test_the_name_of_a_file_reaches_neither_shell_nor_toml(tmp_path, name):
    app = export_flower(parse_config(small(), name=name), tmp_path / "app")
    project = project_of(app)
    plain = project["project"]["name"]
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?", plain)
    out = f"runs/{plain}-{config_sha256(parse_config(small()))[:12]}"
    assert project["tool"]["flwr"]["app"]["config"] == {"experiment": plain, "out": out, "timeout": 600.0}
    for path in app.rglob("*.py"):
        ast.parse(path.read_text())
    for script in ("environment.sh", *SCRIPTS):
        subprocess.run(["bash", "-n", app / script], check=True, timeout=60)
        assert (app / script).read_bytes() == (plain_app(tmp_path) / script).read_bytes()


def plain_app(tmp_path):
    """Return the app of the same configuration under an ordinary name."""
    place = tmp_path / "plain"
    return place if place.exists() else export_flower(parse_config(small(), name="plain.toml"), place)


@pytest.mark.parametrize("made", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_is_there_already_is_left_alone(tmp_path, made):
    made(tmp_path / "app")
    with pytest.raises(DataError, match="app: exists already; remove it or choose another path"):
        export_flower(parse_config(small()), tmp_path / "app")
    assert [path.name for path in tmp_path.rglob("*")] == ["app"]


def test_local_scores_are_refused_where_they_are_asked_for(tmp_path):
    path = tmp_path / "local.toml"
    path.write_text("seed = 1\n[train]\nrounds = 2\nlocal_test = true\n")
    with pytest.raises(ArgumentError, match=r"local\.toml:4:14: train\.local_test: remote clients do not score"):
        export_flower(load_config(path), tmp_path / "app")
    assert not (tmp_path / "app").exists()


@pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")  # Flower's own
def test_runs_states_and_keys_do_not_travel_with_the_app(tmp_path):
    building = pytest.importorskip("flwr.cli.build", reason="the extra flower is not installed")
    app = export_flower(parse_config(small()), tmp_path / "app")
    for name in (
        "runs/app/rounds.jsonl",
        "state-0/app/policy.toml",
        "state-0/flwr/apps/x.py",
        "keys/ca.key",
        "notes.md",
    ):
        (app / name).parent.mkdir(parents=True, exist_ok=True)
        (app / name).touch()
    with zipfile.ZipFile(io.BytesIO(building.build_fab_from_disk(app))) as bundle:
        travels = set(bundle.namelist())
    assert travels == {
        ".info/CONTENT", "README.md", "pyproject.toml", "fedrela_app/__init__.py", "fedrela_app/client_app.py",
        "fedrela_app/config.toml", "fedrela_app/server_app.py",
    }  # fmt: skip


def test_the_example_is_what_is_written_now(tmp_path):
    config = parse_config((EXAMPLE / "fedrela_app" / "config.toml").read_text())
    assert config_toml(config).encode() == (EXAMPLE / "fedrela_app" / "config.toml").read_bytes()
    app = export_flower(config, tmp_path / EXAMPLE.name)
    assert files_of(EXAMPLE) == files_of(app)
    for script in SCRIPTS:
        assert (EXAMPLE / script).stat().st_mode & 0o111


@pytest.mark.parametrize("target", ["file/app", "x" * 300, "sealed/app"])
def test_a_target_that_cannot_be_is_one_line(tmp_path, target):
    (tmp_path / "file").touch()
    (tmp_path / "sealed").symlink_to("/proc/1/nowhere")
    with pytest.raises(ArgumentError, match=r": cannot be written: .*; choose another folder$"):
        export_flower(parse_config(small()), tmp_path / target)
