"""A configuration as a Flower app: where data, model and algorithm meet Flower's clients and server."""

from __future__ import annotations

import contextlib
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from fedrela.engine.run import Run
from fedrela.engine.serial import SerialPool
from fedrela.errors import DataError
from fedrela.experiment.build import build_data
from fedrela.experiment.execution import Execution
from fedrela.experiment.load import config_sha256, config_toml, parse_config
from fedrela.experiment.plan import build_algorithm, build_plan, build_problem
from fedrela.experiment.result import Result
from fedrela.experiment.running import begin, resume
from fedrela.experiment.schema import Config
from fedrela.models.repeatable import one_thread
from fedrela.runfolder import RunFolder

if TYPE_CHECKING:
    from flwr.app import Context
    from flwr.clientapp import ClientApp
    from flwr.serverapp import Grid, ServerApp

    from fedrela.flower.client import Site
    from fedrela.flower.crew import FlowerCrew

STATE = ".fedrela-client"  # where a node keeps what is its own, unless it says otherwise


def client_app(config: Config, state: str = STATE) -> ClientApp:
    """Return the app of every client; data and model are made at its first message.

    Parameters
    ----------
    config
        The same as the server's.
    state
        Folder of the client's own, which must outlive the process; ``state-dir`` in a node's configuration is another.
    """
    from flwr.clientapp import ClientApp

    app, text = ClientApp(), config_toml(config)
    app.train()(lambda message, context: site_of(text, state).answer(message, context))
    app.query("ask")(lambda message, context: site_of(text, state).answer(message, context))
    app.query("hello")(lambda message, context: site_of(text, state).hello(message, context))
    return app


@lru_cache(maxsize=1)  # of one process, which may serve many clients; an app is sent to it with every message
def site_of(text: str, state: str) -> Site:
    """Return where the tasks of clients are carried out in this process."""
    from fedrela.flower.client import Site

    config = parse_config(text)
    with one_thread():
        federation, host = build_data(config), build_algorithm(config)
        problem = build_problem(config, federation, host)
        return Site(Run(problem, build_plan(config, problem, host), SerialPool()), config_sha256(config), state)


def server_app(config: Config, *, out: str | Path, experiment: str, patience: float = 600.0) -> ServerApp:
    """Return the app of the server, which begins a run in `out` or goes on with the one that is there."""
    from flwr.serverapp import ServerApp

    app = ServerApp()

    @app.main()
    def main(grid: Grid, context: Context) -> None:
        serve(config, grid, out=out, experiment=experiment, patience=patience)

    return app


def serve(config: Config, grid: Grid, *, out: str | Path, experiment: str, patience: float = 600.0) -> Result:
    """Carry out a run with the clients of a Flower grid."""
    from fedrela.flower.strategy import FedrelaStrategy

    fingerprint = config_sha256(config)
    strategy = FedrelaStrategy(grid, experiment=experiment, fingerprint=fingerprint, patience=patience)
    with _begin_or_resume(config, Path(out), strategy.crew) as execution:
        result: Result = strategy.start(execution)
    return result


def _begin_or_resume(config: Config, out: Path, crew: FlowerCrew) -> contextlib.AbstractContextManager[Execution]:
    try:
        RunFolder.open(out)
    except DataError:
        return begin(config, out=out, crew=crew)
    return resume(out, crew=crew)
