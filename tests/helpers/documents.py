"""Random TOML documents in random layouts, with the place of every key written down by the writer itself."""

from __future__ import annotations

import datetime
import random
import re
from typing import Any

from hypothesis import strategies as st

AWKWARD = "ab1 .-_#=,'\"\\[]{}\n\té語😀"
words = st.one_of(st.sampled_from(["a", "b", "kind", "x-1", "", "3"]), st.text(AWKWARD, max_size=4))
scalars = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.booleans(),
    st.text(AWKWARD, max_size=9),
    st.datetimes().map(lambda moment: moment.replace(microsecond=0)),
    st.dates(),
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=12,
)
tables = st.dictionaries(words, values, max_size=4)


class Writer:
    """Writes one document and remembers at which offset each key is mentioned first and each value begins."""

    def __init__(self, table: dict[str, Any], chance: random.Random) -> None:
        self.chance = chance
        self.text = ""
        self.keys: dict[tuple[str | int, ...], int] = {}
        self.values: dict[tuple[str | int, ...], int] = {}
        self.body(table, ())

    def places(self) -> dict[tuple[str | int, ...], tuple[tuple[int, int], tuple[int, int]]]:
        return {
            path: (position(self.text, at), position(self.text, self.values.get(path, at)))
            for path, at in self.keys.items()
        }

    def body(self, table: dict[str, Any], path: tuple[str | int, ...], header: str = "") -> None:
        """Write a table: its own keys below its header, its tables inline, dotted, or below headers of their own."""
        late = {k: v for k, v in table.items() if _may_have_headers(v) and self.chance.random() < 0.6}
        own = {k: v for k, v in table.items() if k not in late}
        first = bool(path) and not isinstance(path[-1], int) and bool(late) and self.chance.random() < 0.3
        if first:  # tables inside may come before the table itself, which may then have no header at all
            self.inner(late, path)
        if path and (own or not late or isinstance(path[-1], int) or self.chance.random() < 0.7):
            self.header(path)
        for key, value in own.items():
            self.pairs(path, (), key, value)
        if not first:
            self.inner(late, path)

    def inner(self, tables: dict[str, Any], path: tuple[str | int, ...]) -> None:
        for key, value in tables.items():
            if isinstance(value, dict):
                self.body(value, (*path, key))
            else:
                for i, item in enumerate(value):
                    self.body(item, (*path, key, i))

    def header(self, path: tuple[str | int, ...]) -> None:
        self.between()
        start, brackets = len(self.text), "[[" if isinstance(path[-1], int) else "["
        self.text += brackets + self.blanks()
        last = self.dotted((), path)
        self.text += self.blanks() + brackets.replace("[", "]") + self.line_end()
        self.values[path] = start
        if isinstance(path[-1], int):
            self.keys[path] = last
            self.values.setdefault(path[:-1], start)

    def pairs(self, table: tuple[str | int, ...], dots: tuple[str, ...], key: str, value: Any) -> None:
        if isinstance(value, dict) and value and self.chance.random() < 0.5:
            for inner, item in value.items():
                self.pairs(table, (*dots, key), inner, item)
            return
        self.between()
        self.pair(table, (*dots, key), value)
        self.text += self.line_end()

    def pair(self, table: tuple[str | int, ...], dots: tuple[str, ...], value: Any) -> None:
        self.dotted(table, dots)
        self.text += self.blanks() + "=" + self.blanks()
        self.value((*table, *dots), value)

    def dotted(self, table: tuple[str | int, ...], path: tuple[str | int, ...]) -> int:
        for i, part in enumerate(path):
            if isinstance(part, str):
                self.text += (self.blanks() + "." + self.blanks()) if i else ""
                last = len(self.text)
                self.keys.setdefault((*table, *path[: i + 1]), last)
                self.text += self.word(part)
        return last

    def value(self, path: tuple[str | int, ...], value: Any) -> None:
        self.values[path] = len(self.text)
        self.keys.setdefault(path, len(self.text))
        if isinstance(value, dict):
            self.text += "{" + self.blanks()
            for i, (key, inner) in enumerate(value.items()):
                self.text += ("," + self.blanks()) if i else ""
                self.pair(path, (key,), inner)
                self.text += self.blanks()
            self.text += "}"
        elif isinstance(value, list):
            self.text += "[" + self.gap()
            for i, inner in enumerate(value):
                self.value((*path, i), inner)
                self.text += self.gap() + ("," if i + 1 < len(value) or self.chance.random() < 0.3 else "") + self.gap()
            self.text += "]"
        else:
            self.text += self.scalar(value)

    def scalar(self, value: Any) -> str:
        if isinstance(value, str):
            return self.string(value)
        if isinstance(value, datetime.datetime):
            return value.isoformat(sep=self.chance.choice(" T"))
        return value.isoformat() if isinstance(value, datetime.date) else repr(value).lower()

    def string(self, text: str) -> str:
        forms = [_basic(text), _long_basic(text)]
        if not re.search("[\n']", text):
            forms.append(f"'{text}'")
        if "'''" not in text:
            forms.append("'''\n" + text + "'''")
        return self.chance.choice(forms)

    def word(self, key: str) -> str:
        forms = [_basic(key)]
        if not re.search("[\n']", key):
            forms.append(f"'{key}'")
        if re.fullmatch("[A-Za-z0-9_-]+", key):
            forms += [key, key]
        return self.chance.choice(forms)

    def between(self) -> None:
        self.text += self.chance.choice(["", "", "\n", "# a = [ ' \" 語\n", "\t \n"]) + self.blanks()

    def blanks(self) -> str:
        return self.chance.choice(["", " ", "\t "])

    def gap(self) -> str:
        return self.chance.choice(["", " ", "\n", ' # ] } , "\n\t'])

    def line_end(self) -> str:
        return self.blanks() + self.chance.choice(["", "# b = 1 ]"]) + "\n"


def position(text: str, offset: int) -> tuple[int, int]:
    """Line and column of an offset, both from 1."""
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)


def _may_have_headers(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return bool(items) and all(isinstance(item, dict) for item in items)


def _basic(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("é", "\\u00E9")
    return f'"{escaped}"'


def _long_basic(text: str) -> str:
    return '"""\n' + text.replace("\\", "\\\\").replace('"""', '""\\"') + '"""'
