"""The clients' app: data, model and algorithm as fedrela_app/config.toml describes them."""

from pathlib import Path

from fedrela.experiment.flower_app import client_app
from fedrela.experiment.load import load_config

app = client_app(load_config(Path(__file__).with_name("config.toml")))
