"""The full configuration, versions and digests: what it takes to run the same again."""

from __future__ import annotations

import re

from fedrela.report.page.parts import Block, Code, Facts, Section, Text
from fedrela.report.run.story import Story

ABSOLUTE = re.compile(r'"(?:/|[A-Za-z]:\\\\|\\\\\\\\)[^"\n]*?([^"/\\\n]*)"')


def settings(story: Story) -> Section:
    """Return the configuration as text, and the versions and digests of the run."""
    text = without_places(story.toml)
    said = "Every key, defaults included; [engine], on which no result depends, is left out."
    if text != story.toml:
        said += " Of places on the machine only the last name is shown."
    blocks: list[Block] = [Text(said), Code(text), Facts(_versions(story))]
    return Section("configuration", "Configuration and versions", blocks, print_break=True)


def without_places(toml: str) -> str:
    """Return a configuration whose absolute paths are cut to their last name: a page is for showing to others.

    >>> without_places('root = "/home/ann/clinic data"')
    'root = "…/clinic data"'
    """
    return ABSOLUTE.sub(r'"…/\1"', toml)


def _versions(story: Story) -> list[tuple[str, str]]:
    manifest, result = story.manifest, story.result or {}
    pairs = [*manifest.packages.items(), ("format", manifest.format), ("configuration, sha256", manifest.config_sha256)]
    if "weights_sha256" in result:
        pairs.append(("final weights, sha256", result["weights_sha256"]))
    return pairs
