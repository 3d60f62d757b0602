"""The tables of the paper: its numbers and settings as data, and runs that measure the same."""
