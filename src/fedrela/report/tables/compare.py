"""Tables of a comparison: the paper's form, every arm by itself, and the paired differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from fedrela.report.page import Table
from fedrela.report.tables.arms import arm_words, drop_words, pair_name, score_words, seeds_words
from fedrela.report.tables.cells import interval_points, paper_cell, spread_count, spread_percent
from fedrela.report.tables.values import Value, Values, counted, in_percent

Summary = Mapping[str, Any]
MOVED = "labels moved"
INTERVAL = ("mean", "deviation", "low", "high")


def compare_tables(summary: Summary) -> list[Table]:
    """Return all tables of a comparison; those of pairs only where there are any."""
    if not any(baseline["pairs"] for baseline in summary["baselines"]):
        return [arms_table(summary)]
    return [compare_table(summary), difference_table(summary), arms_table(summary)]


def compare_table(summary: Summary) -> Table:
    """Return the matched pairs in the paper's form, ``baseline (+FedReLa) +gain / -trade-off``."""
    rows = []
    for baseline, pair in pairs(summary):
        base, treated = baseline["arms"][pair["base"]], baseline["arms"][pair["treated"]]
        cells = (
            paper_cell(base[figure]["mean"], treated[figure]["mean"], pair["differences"][figure]["mean"])
            for figure in summary["figures"]
        )
        rows.append((baseline["label"], _told_apart(pair), *cells, spread_count(treated["moved"])))
    caption = f"{score_words(summary)}: without (with) FedReLa, and the gain or trade-off in points"
    return _table(
        ("baseline", "pair", *summary["figures"], MOVED), rows, f"{caption}; {_mean(summary)}{_drop(summary)}."
    )


def difference_table(summary: Summary) -> Table:
    """Return by how much the second arm of each pair exceeds the first, seed by seed, with 95 % intervals."""
    rows = [
        (
            baseline["label"],
            _told_apart(pair),
            *(interval_points(pair["differences"][name]) for name in summary["figures"]),
        )
        for baseline, pair in pairs(summary)
    ]
    words = "Paired differences in points"
    if len(summary["seeds"]) > 1:
        words += f", mean over {len(summary['seeds'])} seeds with the 95 % interval of Student's t"
    return _table(("baseline", "pair", *summary["figures"]), rows, f"{words}{_drop(summary)}.")


def arms_table(summary: Summary) -> Table:
    """Return every baseline and arm by itself."""
    rows = [
        (
            baseline["label"],
            arm_words(arm),
            *(spread_percent(found[name]) for name in summary["figures"]),
            spread_count(found["moved"]),
        )
        for baseline in summary["baselines"]
        for arm, found in baseline["arms"].items()
    ]
    caption = f"{score_words(summary)}; {seeds_words(summary)}{_drop(summary)}."
    return _table(("baseline", "arm", *summary["figures"], MOVED), rows, caption)


def compare_values(summary: Summary) -> Values:
    """Return a comparison for machines, one row a baseline, arm, figure and arm it is compared with, in per cent."""
    columns = (
        "baseline", "algorithm", "arm", "figure", "mean", "deviation", "against", "difference_mean",
        "difference_deviation", "difference_low", "difference_high", "moved_mean", "moved_deviation", "seeds",
    )  # fmt: skip
    rows: list[list[Value]] = []
    for baseline in summary["baselines"]:
        for arm, found in baseline["arms"].items():
            of_arm = [pair for pair in baseline["pairs"] if pair["treated"] == arm]
            for pair in of_arm or [None]:
                for figure in summary["figures"]:
                    difference = pair and pair["differences"][figure]
                    rows.append(
                        [
                            baseline["label"], baseline["algorithm"], arm, figure, *in_percent(found[figure], INTERVAL[:2]),
                            pair and pair["base"], *in_percent(difference, INTERVAL),
                            *counted(found["moved"], INTERVAL[:2]), len(summary["seeds"]),
                        ]
                    )  # fmt: skip
    return Values(columns, rows)


def pairs(summary: Summary) -> Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """Yield every baseline with each of its matched pairs."""
    for baseline in summary["baselines"]:
        for pair in baseline["pairs"]:
            yield baseline, pair


def _told_apart(pair: Mapping[str, Any]) -> str:
    return pair_name(pair["base"], pair["treated"])


def _mean(summary: Summary) -> str:
    seeds = len(summary["seeds"])
    return f"mean over {seeds} seeds" if seeds > 1 else "one seed"


def _drop(summary: Summary) -> str:
    return drop_words(arm for baseline in summary["baselines"] for arm in baseline["arms"])


def _table(columns: tuple[str, ...], rows: list[tuple[str, ...]], caption: str) -> Table:
    return Table(columns, rows, words=columns[:2], caption=caption)
