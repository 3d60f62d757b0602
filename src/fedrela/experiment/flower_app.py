"""A configuration as a Flower app: its clients, its server, the simulator, and a folder for ``flwr run``."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

from fedrela.data.federation import Federation
from fedrela.engine.client import ClientRunner
from fedrela.engine.executors.forkserver import usable_cores
from fedrela.engine.shared_memory import SharedMemory
from fedrela.errors import ArgumentError, DataError, FedrelaError, IntegrityError
from fedrela.experiment.build import build_data
from fedrela.experiment.load import config_sha256, config_toml, load_node, parse_config
from fedrela.experiment.manifests import check_same_config
from fedrela.experiment.node_samples import MismatchError, load_samples
from fedrela.experiment.private import (
    PrivateFederation,
    at_node,
    at_server,
    check_trainable,
    federation_of,
    merged_statistics,
    own_statistics,
    recorded_statistics,
    refusal,
    statistics_specs,
    within_policy,
)
from fedrela.experiment.recorded_run import RecordedRun
from fedrela.experiment.result import Result
from fedrela.experiment.runner import begin_or_resume, build_plan, run_status
from fedrela.experiment.schema import Config
from fedrela.experiment.schema.config_table import Fault
from fedrela.experiment.schema.data import DataConfig
from fedrela.experiment.schema.federation import NodeConfig
from fedrela.experiment.schema.problems import WrongConfigError
from fedrela.experiment.toml.writer import toml_text
from fedrela.files import digest, new_folder, write_new
from fedrela.files.operations import make_folder
from fedrela.models.runtime import one_thread
from fedrela.records import RoundRecord
from fedrela.runfolder import RunFolder, RunStatus
from fedrela.runfolder.json_records import writing
from fedrela.text import nearest_hint, one_line

if TYPE_CHECKING:
    from fedrela.flower.client_app import FlowerClient
    from fedrela.flower.executor import FlowerExecutor

STATE = ".fedrela-client"  # folder of a node's own state, unless it names another
TIMEOUT = 600.0  # seconds
OnRound = Callable[[RecordedRun, RoundRecord | None], None]


def client_app(config: Config, state: str = STATE) -> Any:
    """Return the ``ClientApp`` of every client, which builds data and model at its first message.

    `state` is a folder of the client's own, which must outlive the process; ``state-dir`` in a node's configuration
    names another.
    """
    from fedrela.flower.client_app import client_app

    return client_app(partial(_simulated, config_toml(config), state))


def _simulated(text: str, state: str, node: Mapping[str, Any]) -> FlowerClient:
    return flower_client(text, state)


@lru_cache(maxsize=1)  # of one process, which may serve many clients; an app is sent to it with every message
def flower_client(text: str, state: str) -> FlowerClient:
    """Return an object that runs the tasks of clients in this process; without readable data they take no part."""
    from fedrela.flower.client_app import FlowerClient

    config = parse_config(text)
    client = partial(FlowerClient, config_sha256(config), state)
    try:
        federation = build_data(config)
    except FedrelaError as error:
        return client(_no_runner, refusal=str(error))
    return client(
        lambda _: _runner(config, federation),
        data_sha256=data_sha256(federation.manifest()),
        ids=federation.source.ids_train,
    )


def _runner(config: Config, federation: Federation | PrivateFederation) -> tuple[ClientRunner, SharedMemory]:
    with one_thread():
        memory = SharedMemory()
        return ClientRunner.create(*build_plan(config, federation), memory), memory


def _no_runner(_: Any) -> tuple[ClientRunner, SharedMemory]:
    raise DataError("does not take part")  # the client has already reported why


def data_sha256(manifest: Mapping[str, Any]) -> str:
    """Return the digest of a federation's manifest: of all its samples, labels and shards."""
    return digest(json.dumps(manifest, sort_keys=True).encode())


def private_client_app(config: Config) -> Any:
    """Return the ``ClientApp`` of a private node, which reads only its own samples.

    The node's configuration names its file with ``data``, and its name and private key with ``name`` and ``key``
    unless the file does.
    """
    from fedrela.flower.client_app import client_app

    return client_app(partial(_private, config_toml(config)))


def _private(text: str, node: Mapping[str, Any]) -> FlowerClient:
    own = {key: str(node.get(key, "")) for key in ("name", "key")}
    return private_client(text, STATE, str(node.get("data", "node.toml")), **own)


@lru_cache(maxsize=64)  # nodes of one process, as in tests
def private_client(text: str, state: str, data: str, name: str = "", key: str = "") -> FlowerClient:
    """Return an object that runs the tasks of a private node; an error in its data or policy excludes it."""
    from fedrela.flower.client_app import FlowerClient, PrivateNode
    from fedrela.flower.mod import LOG
    from fedrela.flower.roster import signer

    config = parse_config(text)
    number = node_number(config, name or load_node(data).name or "")
    client = partial(FlowerClient, config_sha256(config), state, client=number)
    try:
        node = load_node(data)
        if own_key := node.key or (Path(key) if key else None):
            client = partial(client, sign=signer(own_key))  # first: a refusal is signed too
        samples = load_samples(node, config)
        own = within_policy(config, node, number, samples.ids_train)
        check_trainable(node, samples)
    except MismatchError as error:
        return client(_no_runner, refusal=str(error))
    except Exception as error:  # perhaps from the node's own function: it may contain data
        LOG.error("fedrela: cannot take part: %s", one_line(error))
        return client(_no_runner, refusal="its file or its data cannot be read; its own log says why")
    statistics = partial(own_statistics, config, node, samples)
    alone = PrivateNode(samples.sha256, statistics, samples.y_test, node.policy.confusion)
    return client(
        lambda agreed: _runner(own, at_node(own, samples, number, agreed)),
        private=alone,
        ids=samples.ids_train,
        refusal=refusal(config, node.policy),
    )


def node_number(config: Config, name: str) -> int:
    """Return the number of a node in the roster."""
    nodes = federation_of(config).nodes
    if name not in nodes:
        hint = nearest_hint(name, nodes)
        raise ArgumentError(f"expected a name of federation.nodes, got {name!r}{hint}", argument="name")
    return nodes.index(name)


def check_key(config: Config, node: NodeConfig, number: int) -> None:
    """Raise if the private key of a node's file cannot be read, or does not belong to its public key in the roster."""
    name, text = federation_of(config).nodes[number], b"fedrela node check"
    public = federation_of(config).keys.get(name)
    if node.key:
        from fedrela.flower.roster import signer, verified

        signature = signer(node.key)(text)
        if public and not verified(public, signature, text):
            raise MismatchError(f"{node.key}: is not the private key of {name!r} in federation.keys")


def serve(
    config: Config, grid: Any, *, out: str | Path, experiment: str, timeout: float = TIMEOUT,
    on_round: OnRound | None = None, private: bool = False, data: str | Path | None = None,
) -> Result:  # fmt: skip
    """Run the clients' configuration on a Flower grid, or resume the run in `out`.

    Parameters
    ----------
    config
        The checked configuration, see `fedrela.experiment.load.load_config`.
    grid
        The grid that Flower passes to a ``ServerApp``.
    out
        The run folder.
    experiment
        The name under which clients store their states; use the same to resume.
    timeout
        Seconds to wait for clients to connect, and for replies if ``train.deadline`` is 0.
    on_round
        Called with the run before its first round, and after each.
    private
        Whether nodes are private: the server then has no samples but those that `data` names.
    data
        The file that names the server's own samples.

    Examples
    --------
    The main function of a ``ServerApp``:

    >>> def main(grid, context):
    ...     config = load_config("federation.toml")
    ...     serve(config, grid, out="runs/icu", experiment="icu")
    """
    from fedrela.flower.executor import FlowerExecutor

    check_servable(config)
    if private and run_status(out) is RunStatus.DONE:  # its nodes need not score it again
        check_same_config(RunFolder.open(out), config)
        return Result.load(out)
    keys = {} if config.federation is None else config.federation.keys
    numbers = {federation_of(config).nodes.index(name): key for name, key in keys.items()} if private else {}
    executor = FlowerExecutor(
        grid, experiment=experiment, fingerprint=config_sha256(config), timeout=timeout, keys=numbers
    )
    if private:
        executor.roster.clients = range(len(federation_of(config).nodes))
    federation = _server_part(config, executor, out, data) if private else None
    with begin_or_resume(config, out=out, executor=executor, federation=federation) as recorded:
        if not private:
            executor.roster.data_sha256 = data_sha256(recorded.folder.manifest["data"])
            executor.roster.clients = range(len(recorded.folder.manifest["data"]["client_sizes"]))
        report = on_round or (lambda *_: None)
        records = recorded.folder.rounds()
        executor.note_rounds(map(RoundRecord.from_record, records), recorded.every)
        executor.resume_at(len(records), recorded.every)  # its newest checkpoint; what came later is cut off
        report(recorded, None)
        for done in recorded.rounds():
            executor.note_rounds([done.record], recorded.every)
            report(recorded, done.record)
        return recorded.finish()


def _server_part(
    config: Config, executor: FlowerExecutor, out: str | Path, data: str | Path | None
) -> PrivateFederation:
    """Return the server's part, after the exchange of statistics, or with those that the run in `out` started with."""
    samples = load_samples(load_node(data), config) if data is not None and Path(data).exists() else None
    if run_status(out) is not RunStatus.MISSING:
        run_folder = RunFolder.open(out)
        check_same_config(run_folder, config)
        executor.agreed = recorded_statistics(run_folder.manifest)
        part = at_server(config, samples, executor.agreed)
        if json.loads(json.dumps(part.manifest())) != run_folder.manifest["data"]:
            what = f"{out}: the server's samples are not those that the run started with"
            raise IntegrityError(f"{what}; restore them to resume, or start a new run in another folder")
        return part
    if specs := statistics_specs(config):
        executor.agreed = merged_statistics(config, executor.statistics(specs))
    return at_server(config, samples, executor.agreed)


def simulate(
    config: Config, *, out: str | Path, workers: int | str | None = None, on_round: OnRound | None = None
) -> Result:
    """Run in Flower's simulator; clients keep their states in the run folder."""
    from fedrela.flower.simulator import simulate

    check_servable(config)
    clients = len(build_data(config).shards)
    wanted = config.engine.workers if workers is None else workers
    cores = usable_cores() if isinstance(wanted, str) else wanted
    work = partial(serve, config, out=out, experiment="simulation", on_round=on_round)
    result: Result = simulate(work, client_app(config, str(Path(out).absolute() / "clients")), clients, cores)
    return result


def check_servable(config: Config) -> None:
    """Raise if a configuration asks for something that remote clients cannot do."""
    if config.train.local_test:
        what = "remote clients do not score their own models; leave it out"
        raise WrongConfigError([Fault(("train", "local_test"), what)], config.origin)


TEMPLATES = files("fedrela.experiment") / "app_template"
APP, SCRIPTS = "fedrela_app", ("start-superlink.sh", "start-supernode.sh", "make-trial-keys.sh")
LONGEST_NAME = 64
PLACES = {
    "pyproject.toml": "", "README.md": "", "environment.sh": "", **dict.fromkeys(SCRIPTS, ""),
    "client_app.py": APP, "server_app.py": APP,
}  # fmt: skip


def export_flower(config: Config, target: str | Path, *, private: bool = False) -> Path:
    """Write a Flower app that runs a configuration to a new folder.

    Every node must be able to read the data that it names, or with `private` its own data, named in its own file.
    """
    target, name = Path(target), _name(config, Path(target))
    check_servable(config)
    # First: a target that is taken is refused before data are read.
    with writing(target), new_folder(target) as folder:
        if private:
            data: Any = {"standardize": config.data.standardize, "scaling": config.data.scaling}  # all that nodes need
            config = config.model_copy(update={"data": DataConfig(**data)})
            values, described = _private_values(list(federation_of(config).nodes)), config.as_table() | {"data": data}
        else:
            values, described = _client_values(len(build_data(config).shards)), config.as_table()
        values |= {"name": name, "out": f"runs/{name}-{config_sha256(config)[:12]}"}
        make_folder(folder / APP)
        for file, place in PLACES.items():
            template = "README-private.md" if private and file == "README.md" else file
            text = Template((TEMPLATES / f"{template}.in").read_text(encoding="utf-8")).substitute(values)
            write_new(folder / place / file, [text.encode()])
        write_new(folder / APP / "__init__.py", [b'"""A fedrela run as a Flower app."""\n'])
        write_new(folder / APP / "config.toml", [toml_text(described).encode()])
        for script in SCRIPTS:
            (folder / script).chmod(0o755)
    return target


NUMBERED = """[[ "$client" =~ ^(0|[1-9][0-9]{0,8})$ ]] || fail "expected the client's number, from 0, as first argument"
[ "$client" -lt CLIENTS ] || fail "$client: there are CLIENTS clients, 0 to LAST"
number=$client"""
NAMED = """names=(NAMES) number=-1
for i in "${!names[@]}"; do [ "${names[$i]}" != "$client" ] || number=$i; done
[ "$number" -ge 0 ] || fail "expected the node's name as first argument, one of ${names[*]}"
data="$PWD/node.toml\""""
NODE_FILE = """case "$data" in *[\\'[:cntrl:]]*) fail "$data: expected a path without quotation marks in it" ;; esac
[ -f "$data" ] || fail "$data: the node's own file is missing; name it with --data"
key="$client" node="name='$client' data='$data'"
[ ! -f "$keys/$key" ] || node+=" key='$keys/$key'\""""
OPTIONS = "--superlink, --port, --state, --keys or --insecure"


def _client_values(clients: int) -> dict[str, Any]:
    """Return the values of the templates for clients that share one data set."""
    return {
        "clients": clients,
        "last": clients - 1,
        "few": " ".join(map(str, range(min(clients, 3)))) + (" ..." if clients > 3 else ""),
        "about_client": "data, model and algorithm as fedrela_app/config.toml describes them",
        "client_app": "client_app",
        "server_data": "",
        "server_key": "",
        "usage": "CLIENT",
        "who": NUMBERED.replace("CLIENTS", str(clients)).replace("LAST", str(clients - 1)),
        "data_option": "",
        "options": OPTIONS,
        "node": f'key="node$client" node="partition-id=$client num-partitions={clients}"',
        "key_names": f"$(seq -f node%.0f 0 {clients - 1})",
    }


def _private_values(nodes: list[str]) -> dict[str, Any]:
    """Return the values of the templates for private nodes."""
    return {
        "clients": len(nodes),
        "first": nodes[0],
        "about_client": "the samples that its own node.toml names; all else as fedrela_app/config.toml says",
        "client_app": "private_client_app",
        "server_data": ', "data": str(options["data"]), "private": True',
        "server_key": 'data = "server.toml"       # names the server\'s own test samples; optional\n',
        "usage": "NAME [--data node.toml]",
        "who": NAMED.replace("NAMES", " ".join(nodes)),
        "data_option": '\n    --data) with_value "$@"; data="$(absolute "$2")"; shift 2 ;;',
        "options": f"--data, {OPTIONS}",
        "node": NODE_FILE,
        "key_names": " ".join(nodes),
    }


def _name(config: Config, target: Path) -> str:
    """Return a name that is valid for a package, a folder and a shell."""
    file = Path(config.origin.name)
    stem = file.stem if file.suffix == ".toml" and file.stem != "config" else target.name
    plain = re.sub(r"[^a-z0-9]+", "-", stem.lower()).strip("-")
    return plain[:LONGEST_NAME].strip("-") or "fedrela-run"
