"""TOML as text: where every key stands, what is wrong with the syntax, and how values are written."""
