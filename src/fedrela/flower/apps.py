"""Flower's apps around a client and around a server's run, and Flower's own simulator to try them in."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from flwr.app import Context
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp

from fedrela.flower.client import FlowerClient

QUIET = {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "FLWR_DISABLE_RUNTIME_DEPENDENCY_INSTALLATION": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def client_app(client: Callable[[], FlowerClient]) -> ClientApp:
    """Return the app of every client; `client` is called with every message, so it should cache what it returns."""
    app = ClientApp()
    app.train()(lambda message, context: client().answer(message, context))
    app.query("ask")(lambda message, context: client().answer(message, context))
    app.query("hello")(lambda message, context: client().hello(message, context))
    return app


def simulate(work: Callable[[Grid], Any], app: ClientApp, clients: int, cores: int) -> Any:
    """Do some work with a grid of Flower's simulator, and return what it returns; its clients are processes of Ray."""
    from flwr.simulation import run_simulation

    server, done = ServerApp(), dict[str, Any]()

    @server.main()
    def main(grid: Grid, context: Context) -> None:
        try:
            done["result"] = work(grid)
        except BaseException as error:  # in a thread of the simulator, which would report it in many lines
            done["error"] = error

    backend: Any = {"client_resources": {"num_cpus": 1}, "init_args": {"num_cpus": cores}}
    with _quiet():
        run_simulation(server, app, num_supernodes=clients, backend_config=backend)
    if "error" in done:
        raise done["error"]
    return done["result"]


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Flower and Ray from reporting to anybody, from writing to the home folder, and from logging."""
    logger = logging.getLogger("flwr")
    level, before = logger.level, dict(os.environ)
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ.update(QUIET | {"FLWR_HOME": os.environ.get("FLWR_HOME", home), "OMP_NUM_THREADS": "1"})
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)
            os.environ.clear()
            os.environ.update(before)
