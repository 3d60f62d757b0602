"""Pages are run as they stand: snippets in order, commands as a reader would type them, outputs as they are shown."""

from __future__ import annotations

import ast
import itertools
import re
import runpy
import shlex
import textwrap
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import typer

from fedrela.cli.main import COMMANDS, UsageError, load_command
from fedrela.experiment.load import parse_config
from fedrela.experiment.schema import Config
from fedrela.plugin import Policy

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RUN = runpy.run_path(str(DOCS / "run.py"), run_name="pages")
PAGES = [path for path in sorted(DOCS.rglob("*.md")) if "_build" not in path.parts]
PAGES += [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]
RUNNABLE = [page for page in PAGES if any(block.runs for block in RUN["blocks"](page.read_text()))]


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pages", type(ast)("pages"))


def parse(words: list[str]) -> None:
    """Parse a command line as `fedrela` does, and run nothing."""
    words = list(itertools.dropwhile(lambda word: word.startswith("--"), words))  # options before the verb
    if not words:
        return
    command, rest = load_command(words[0]), words[1:]
    while rest and getattr(command, "commands", None):
        command, rest = command.commands[rest[0]], rest[1:]
    if "--help" not in rest and not getattr(command, "commands", None):
        command.make_context(words[0], list(rest))


def commands(text: str) -> Iterator[str]:
    """Yield the commands of a page: lines of shell blocks, and those that stand in a sentence."""
    for block in RUN["blocks"](text):
        if block.kind == "sh":
            yield from block.text.splitlines()
    for words in re.findall(r"`(fedrela\s[^`]+)`", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)):
        if not re.search(r"[|…]|\.\.\.", words):
            yield " ".join(words.split())


@pytest.mark.parametrize(
    ("shown", "printed", "fits"),
    [
        ("rare 60.1, 12 moved", "rare 61.9, 12 moved", True),
        ("rare 60.1, 12 moved", "rare 6.1, 12 moved", False),
        ("rare 60.1, 12 moved", "rare 60.1, 13 moved", False),
        ("p = 0.012\n...", "p = 7.5\nand more", True),
        ("0.25 per cent", "0.25 per mille", False),
    ],
)
def test_decimals_may_differ_a_little(shown, printed, fits):
    assert RUN["fits"](RUN["Block"]("output", shown, 1, (0, 0)), printed) is fits


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_are_those_of_the_command_line(page):
    wrong = []
    for line in commands(page.read_text()):
        words = shlex.split(line.partition(" > ")[0], comments=True)
        if words[:1] == ["fedrela"] and len(words) > 1:
            try:
                parse(words[1:])
            except (click.MissingParameter, click.BadOptionUsage, typer.Exit):
                pass  # a sentence may leave arguments out
            except (UsageError, KeyError) as error:
                wrong.append(f"{page.name}: {line}: {error}")
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_snippets_of_a_page_are_python(page):
    for block in RUN["blocks"](page.read_text()):
        if block.kind == "python" and ">>> " not in block.text:
            ast.parse(block.text, f"{page.name}:{block.line}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_blocks_of_a_page_name_their_language_and_configurations_are_valid(page):
    found = [block for block in RUN["BLOCK"].finditer(page.read_text()) if block["setup"] is None]
    assert "" not in [block["kind"] for block in found], "call it text if it is neither run nor coloured"
    for block in found:
        if block["kind"] == "toml" and not block["mark"]:  # a file is used by the page itself
            text = textwrap.dedent(block["text"])
            table = tomllib.loads(text)
            if table.keys() <= Config.model_fields.keys():
                parse_config(text, name=page.name)
            if "passes" in table:
                Policy(**table)


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.stem)
def test_a_page_does_what_it_says(page, tmp_path, request):
    if not request.config.getoption("--nightly"):
        pytest.skip("in the nightly battery")
    assert RUN["problems"](page, tmp_path) == []


@pytest.mark.parametrize("page", sorted((DOCS / "tutorials").glob("*.md")), ids=lambda page: page.stem)
def test_pictures_of_a_tutorial_are_those_that_it_draws(page):
    text = page.read_text()
    drawn = "\n".join(block.text for block in RUN["blocks"](text))
    for picture in RUN["PICTURE"].findall(text):
        assert picture.startswith("pictures/")
        assert Path(picture).name in drawn
        assert (page.parent / picture).is_file()


def test_a_page_that_says_something_else_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    (tmp_path / "there").mkdir()
    page.write_text(
        "<!-- file: a/b.txt -->\n```toml\nx = 1\n```\n\n<!-- setup\nhidden = 3\n-->\n\n"
        "```python\nfrom pathlib import Path\nprint(Path('a/b.txt').read_text(), hidden)\n```\n"
        "<!-- output -->\n```text\nx = ...\n3\n```\n"
        "```sh\necho 0.51 0.2\n```\n<!-- output -->\n```text\n0.49 0.3\n```\n"
        "```python\n# needs a GPU\nimport nothing\n```\n```sh\necho here\n```\n<!-- output -->\n```text\nthere\n```\n"
    )
    found = RUN["problems"](page, tmp_path / "there")
    assert len(found) == 1
    assert found[0].startswith("page.md:33: expected\nthere\n")


@pytest.mark.parametrize("name", ["configuration.md", "command-line.md"])
def test_the_pages_of_reference_are_up_to_date(name):
    made = runpy.run_path(str(DOCS / "reference.py"))["MADE"]
    assert (DOCS / "reference" / name).read_text() == made[name](), "run python docs/reference.py"


def test_every_verb_has_its_section():
    page = (DOCS / "reference" / "command-line.md").read_text()
    assert [verb for verb in COMMANDS if f"\n## `fedrela {verb}`\n" not in page] == []
