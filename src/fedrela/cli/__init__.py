"""The command line: one file per verb, joined in `main`."""
