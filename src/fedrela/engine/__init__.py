"""The embedded engine: a federated run on one machine, in this process or over worker processes."""
