"""The app of the server: it carries out fedrela_app/config.toml with the clients that are connected."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp

from fedrela.experiment.flower_app import serve
from fedrela.experiment.load import load_config

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Start the run, or resume the one that is there."""
    said = context.run_config
    config = load_config(Path(__file__).with_name("config.toml"))
    names = {"out": str(said["out"]), "experiment": str(said["experiment"])}
    result = serve(config, grid, patience=float(said["patience"]), **names)
    print(result)
