"""TOML as text: positions of keys, syntax errors, and how values are written."""
