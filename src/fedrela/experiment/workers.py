"""The executor that does the clients' work, for the command line."""

from fedrela.engine.executors import open_executor, start_early

__all__ = ["open_executor", "start_early"]
