"""What all records together say, for the first page of docs/results: gains by data, other remedies, where not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from result_records import (
    Arms,
    Study,
    common,
    difference,
    gain_text,
    headline,
    rare,
    spread,
    table,
)
from result_sections import PUBLISHED_ROUNDS, printed

from fedrela.metrics.paired import Interval
from fedrela.text import listed, percent, plural, points

REMEDIES = "-remedies"  # ends the name of a study that has the plain models of another one, too
REPEATED = (REMEDIES, "-protocols")  # end the names of studies with settings of others
# What clients can do about imbalance in place of FedReLa.
PEERS = ("Re-weighting", "Oversampling", "SMOTE", "FedMix", "Balanced softmax")
SIZE = "fmnist-published"  # the study at the size of the paper
LEARNT = 0.1  # of the way from chance to a perfect model
PLACES = {  # pages whose rows are counted together: what they are about
    "fashion-mnist": "Fashion-MNIST",
    "cifar-10": "CIFAR-10-LT",
    "cifar-100": "CIFAR-100-LT",
    "tables": "tables and medical images",
}

Gain = tuple[Study, str, Arms]
Remedy = tuple[Study, str, Arms, Arms]  # a model's study, the remedy, the model's arms, the remedy's
Metric = Callable[[Study], str]


def all_gains(studies: Sequence[Study], pages: Sequence[str]) -> list[Gain]:
    """Return every row of the pages that has FedReLa and its baseline: study, name and arms."""
    return [
        (study, ", ".join(filter(None, (baseline, study.setting(arms)))), arms)
        for study in studies
        if study.page in pages and study.cells
        for (baseline, _), arms in study.rows.items()
        if {"baseline", "fedrela"} <= arms.keys()
    ]


def plain(gain: Gain) -> bool:
    """Whether nothing else is done about imbalance: remedies have a comma in their name, or are peers."""
    study, name, arms = gain
    return arms["baseline"][0]["baseline"] not in PEERS and (study.page != "tables" or "," not in name)


def learnt(study: Study, arms: Arms) -> bool:
    """Whether the baseline is at least a tenth of the way from chance to a perfect model."""
    chance = 1 / len(arms["baseline"][0]["per_class"])
    return (spread(arms["baseline"], headline(study)).mean or 0) - chance >= LEARNT * (1 - chance)


def counted(studies: Sequence[Study]) -> tuple[list[Gain], list[Gain]]:
    """Return the rows that the first page counts, and those it leaves out since their baseline has not learnt."""
    found = [gain for gain in all_gains(studies, tuple(PLACES)) if plain(gain) and not gain[0].name.endswith(REPEATED)]
    good = [learnt(study, arms) for study, _, arms in found]
    return [g for g, ok in zip(found, good, strict=True) if ok], [
        g for g, ok in zip(found, good, strict=True) if not ok
    ]


COLUMNS: tuple[tuple[str, str, str, Metric], ...] = (  # of the table of medians: a title, two arms, what of them
    ("common classes", "baseline", "fedrela", common),
    ("rare classes", "baseline", "fedrela", rare),
    ("headline accuracy", "baseline", "fedrela", headline),
    ("rare classes, the drop alone", "baseline", "baseline-drop", rare),
    ("rare classes, FedReLa, both arms with the drop", "baseline-drop", "fedrela-drop", rare),
)


def means(gains: Sequence[Gain], base: str, treated: str, metric: Metric) -> list[float]:
    """Return the difference of two arms in each row that has both."""
    rows = [(study, arms) for study, _, arms in gains if {base, treated} <= arms.keys()]
    found = [difference(arms, base, treated, metric(study)).mean for study, arms in rows]
    return [each for each in found if each is not None]


def by_place(gains: Sequence[Gain], page: str) -> list[Gain]:
    """Return the rows of one page."""
    return [gain for gain in gains if gain[0].page == page]


def drop_alone(gains: Sequence[Gain]) -> str:
    """Say where the learning-rate drop alone does better than FedReLa alone, by headline accuracy."""
    words = []
    for page, name in PLACES.items():
        rows = [(study, arms) for study, _, arms in by_place(gains, page) if "baseline-drop" in arms]
        ahead = [difference(arms, "fedrela", "baseline-drop", headline(study)).mean or 0.0 for study, arms in rows]
        if rows:
            words.append(f"{sum(each > 0 for each in ahead)} of {len(rows)} ({name})")
    return listed(words) or "not measured yet"


def published_size(studies: Sequence[Study]) -> str:
    """Say what the rare classes gain at the size of the paper, by the protocol of the official code, and in print."""
    by_words: dict[str, list[str]] = {}
    for study in (study for study in studies if study.name == SIZE and study.cells):
        column = 3 + study.metrics.index(rare(study))
        for row in printed(study):
            by_words.setdefault(row[2], []).append(row[column].rpartition("(")[2].rstrip(")"))
    official = next((words for words in by_words if words.endswith("best test round")), "")
    if not official:
        return ""
    seeds = plural(len({cell["seed"] for study in studies if study.name == SIZE for cell in study.cells}), "seed")
    where = f"With the paper's {PUBLISHED_ROUNDS} rounds on [Fashion-MNIST](fashion-mnist.md) (FedAvg, IR 20, {seeds})"
    gain, print_gain = listed(by_words[official]), listed(by_words["printed"])
    return f"{where}, scored as in the official code, the rare classes gain {gain}; the paper prints {print_gain}."


def rising(gains: Sequence[Gain], metric: Metric) -> int:
    """Return in how many rows FedReLa gains."""
    return sum(each > 0 for each in means(gains, "baseline", "fedrela", metric))


def _medians(gains: Sequence[Gain], base: str, treated: str, metric: Metric) -> dict[str, float]:
    """Return the median of every page, the lowest first."""
    found = {name: means(by_place(gains, page), base, treated, metric) for page, name in PLACES.items()}
    return dict(sorted(((name, median(each)) for name, each in found.items() if each), key=lambda pair: pair[1]))


def medians(gains: Sequence[Gain], base: str, treated: str, metric: Metric) -> str:
    """Write the lowest and the highest of the medians of each kind of data.

    >>> medians([], "baseline", "fedrela", rare)
    'not measured yet'
    """
    middle = [(name, points(each)) for name, each in _medians(gains, base, treated, metric).items()]
    ends = dict.fromkeys([*middle[:1], *middle[-1:]])
    return " to ".join(f"{value} ({name})" for name, value in ends) or "not measured yet"


def median_table(gains: Sequence[Gain], left_out: Sequence[Gain]) -> Iterator[str]:
    """Yield medians and ranges for each page."""
    rows = []
    for page, name in PLACES.items():
        here = by_place(gains, page)
        numbers = [means(here, *which) for _, *which in COLUMNS]
        if here:
            several = sum(len(arms["fedrela"]) > 1 for _, _, arms in here)
            size = f"{len(here)}, {several} with several seeds"
            rows.append(
                [
                    name,
                    size,
                    *(f"{points(median(n))} ({points(min(n))} to {points(max(n))})" if n else "-" for n in numbers),
                ]
            )
    if not rows:
        return
    yield "## By data"
    yield ""
    yield "Median of the differences over all settings, and their range, in points:"
    yield ""
    yield from table(["data", "settings", *(title for title, *_ in COLUMNS)], rows)
    yield "Settings share data and models, and most have one seed: this describes them, and is no estimate for other"
    yield "data."
    if left_out:
        named = "; ".join(f"{study.short}, {name}" for study, name, _ in left_out)
        yield f"Baselines that have hardly learnt (less than {percent(LEARNT, 0)} of the way from chance to a perfect"
        yield f"model) are left out: {named}."
    gain, study, name = _by_headline(gains)[0]
    yield f"The headline accuracy changes most for the worse with {study.short}, {name} ({points(gain.mean)})."
    yield f"By it the learning-rate drop alone is ahead of FedReLa alone in {drop_alone(gains)}."
    yield ""


def random_table(studies: Sequence[Study]) -> Iterator[str]:
    """Yield what FedReLa gains over as many random moves between the same classes."""
    rows = [
        [
            study.short,
            ", ".join(filter(None, (baseline, study.setting(arms)))),
            str(len(arms["random"])),
            *(gain_text(difference(arms, "random", "fedrela", of(study))) for of in (common, rare, headline)),
        ]
        for study in studies
        if study.page not in ("harm", "sensitivity") and study.cells
        for (baseline, _), arms in study.rows.items()
        if {"random", "fedrela"} <= arms.keys()
    ]
    if not rows:
        return
    yield "## Which samples move"
    yield ""
    yield "FedReLa minus as many [random moves](random.md) between the same classes, in points:"
    yield ""
    yield from table(["study", "model", "seeds", "common classes", "rare classes", "headline accuracy"], rows)


def tally(gains: Sequence[Gain], base: str, treated: str, metric: Metric) -> str:
    """Say what a pair of arms gains over rows of one kind: the mean, the range, and in how many rows beyond noise."""
    found = [
        difference(arms, base, treated, metric(study)) for study, _, arms in gains if {base, treated} <= arms.keys()
    ]
    here = [each.mean for each in found if each.mean is not None]
    tested = [each for each in found if each.low is not None]
    if not here:
        return "not measured yet"
    up, down = (sum(sign * each.low > 0 and sign * each.high > 0 for each in tested) for sign in (1, -1))
    mean, settings = points(sum(here) / len(here)), plural(len(here), "setting")
    ends = f"from {points(min(here))} to {points(max(here))}"
    noise = f"of the {len(tested)} with several seeds {up} rise, {down} fall beyond noise"
    return f"{mean} points on average over {settings} ({ends}; {noise})"


def run_digests(arms: Arms) -> tuple[str, ...]:
    """Return what identifies the runs of a row: several studies have the default setting."""
    return tuple(cell["weights_sha256"] for arm in ("baseline", "fedrela") for cell in arms[arm])


def where_not(studies: Sequence[Study], gains: Sequence[Gain]) -> str:
    """Say in a sentence where the headline accuracy falls: how often in `gains`, and in which settings made for it."""
    found = _by_headline(gains)
    pages = [study.page for gain, study, _ in found if (gain.mean or 0) < 0]
    counts = [
        f"{pages.count(page)} of {len(by_place(gains, page))} ({name})"
        for page, name in PLACES.items()
        if page in pages
    ]
    words = [f"in {listed(counts)} settings"] if counts else []
    made = {run_digests(gain[2]): gain for gain in all_gains(studies, ("harm", "sensitivity"))}.values()
    worse = [each for each in _by_headline(made) if (each[0].mean or 0) < 0]
    clear = [each for each in worse if each[0].high is not None and each[0].high < 0]
    if made:
        named = gains_listed((name, gain) for gain, _, name in clear or worse[:2])
        noise = f"beyond noise in {len(clear)}{': ' if named else ''}{named}"
        where = "[harm](harm.md) and [sensitivity](sensitivity.md)"
        words.append(f"in {len(worse)} of {plural(len(made), 'setting')} of {where}, {noise}")
    return f"The headline accuracy falls {', and '.join(words)}." if words else "Not measured yet."


def _by_headline(gains: Iterable[Gain]) -> list[tuple[Interval, Study, str]]:
    """Return what FedReLa gains by headline accuracy in every row, the lowest first."""
    found = [(difference(arms, "baseline", "fedrela", headline(study)), study, name) for study, name, arms in gains]
    return sorted(found, key=lambda each: each[0].mean or 0)


def gains_listed(gains: Iterable[tuple[str, Interval]]) -> str:
    """Write what each row gains, without what all names begin with.

    >>> gains_listed([("FedAvg, IR 1", Interval(-0.1, None, (-0.1,))), ("FedAvg, IR 5", Interval(-0.2, None, (-0.2,)))])
    'IR 1 (-10.0) and IR 5 (-20.0)'
    """
    found = [(name.split(", "), points(gain.mean)) for name, gain in gains]
    shared = len({parts[0] for parts, _ in found}) == 1 and all(len(parts) > 1 for parts, _ in found)
    return listed([f"{', '.join(parts[shared:])} ({gain})" for parts, gain in found])
