"""The command line: one file a verb, joined in `main`."""
