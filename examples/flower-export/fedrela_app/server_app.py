"""The server's app: it runs fedrela_app/config.toml with the clients that are connected."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedrela.experiment.flower_app import serve
from fedrela.experiment.load import load_config

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Start the run, or resume an interrupted one."""
    options = context.run_config
    config = load_config(Path(__file__).with_name("config.toml"))
    given = {"out": str(options["out"]), "experiment": str(options["experiment"])}
    result = serve(config, grid, timeout=float(options["timeout"]), **given)
    print(result)
