"""In which settings the matched and the published protocol differ, found from the configurations themselves."""

from __future__ import annotations

from collections.abc import Iterable

from fedrela.experiment.toml.writer import leaves
from fedrela.reproduction.paper_table import BASELINE, PROTOCOLS, TREATED, PaperCell, PaperTable

Place = dict[str, str]
WORDS = ("arm", "dataset", "method")  # axes whose values need no explanation


def differences(table: PaperTable, scale: str, cells: Iterable[PaperCell]) -> list[dict[str, str]]:
    """Return a row for each setting that differs: ``setting``, and its value by protocol.

    A setting that differs at some places only has them in brackets.
    """
    found: dict[tuple[str, str, str], list[Place]] = {}
    everywhere: list[Place] = []
    for cell in cells:
        for k, arm in enumerate((BASELINE, TREATED)):
            place = {**table.place(cell), "arm": arm}
            everywhere.append(place)
            ways = [(way, table.protocols[way].pair[k]) for way in PROTOCOLS]
            pair = [table.config(cell, name, scale, 1, protocol=way).as_table() for way, name in ways]
            if arm == BASELINE:  # it uses nothing in [relabel]
                pair = [{**config, "relabel": {}} for config in pair]
            matched, published = (dict(leaves(config)) for config in pair)
            for key in dict.fromkeys([*matched, *published]):
                values = matched.get(key, "-"), published.get(key, "-")
                if values[0] != values[1]:
                    found.setdefault((key, *values), []).append(place)
    rows = [("round that counts", *(table.protocols[way].score for way in PROTOCOLS))]
    rows += [(f"{key}{_where(places, everywhere)}", *values) for (key, *values), places in found.items()]
    return [dict(zip(("setting", *PROTOCOLS), row, strict=True)) for row in rows]


def _where(places: list[Place], everywhere: list[Place]) -> str:
    """Return which values of which axes the places have, unless these are all.

    >>> _where([{"arm": "+FedReLa", "IF": "50"}], [{"arm": "baseline", "IF": "50"}, {"arm": "+FedReLa", "IF": "50"}])
    ' (+FedReLa)'
    """
    words = []
    for axis in everywhere[0]:
        here, all_values = (list(dict.fromkeys(place[axis] for place in of)) for of in (places, everywhere))
        if len(here) < len(all_values):
            words.append(" and ".join(here) if axis in WORDS else f"{axis} {' and '.join(here)}")
    return f" ({', '.join(words)})" if words else ""
