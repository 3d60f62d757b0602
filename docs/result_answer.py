"""What all records together say, for the first page of docs/results: gains by data, other remedies, where not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from statistics import median

from result_records import (
    Arms,
    Cell,
    Study,
    cell_text,
    common,
    difference,
    gain_text,
    headline,
    rare,
    spread,
    table,
    validation,
)
from result_sections import PUBLISHED_ROUNDS, beside, printed, unlike

from fedrela.metrics.paired import Interval
from fedrela.text import listed, percent, plural, points

TAU = "-tau"  # ends the name of a study of FedReLa on plain models with several values of tau
REMEDIES = "-remedies"  # ends the name of a study that has the plain models of another one, too
REPEATED = (REMEDIES, "-protocols")  # end the names of studies with settings of others
# What clients can do about imbalance in place of FedReLa.
PEERS = ("Re-weighting", "Oversampling", "SMOTE", "FedMix", "Balanced softmax")
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
    for study in (study for study in studies if study.name == "fmnist-published" and study.cells):
        column = 3 + study.metrics.index(rare(study))
        for row in printed(study):
            by_words.setdefault(row[2], []).append(row[column].rpartition("(")[2].rstrip(")"))
    official = next((words for words in by_words if words.endswith("best test round")), "")
    if not official:
        return ""
    where = f"With the paper's {PUBLISHED_ROUNDS} rounds on [Fashion-MNIST](fashion-mnist.md) (FedAvg, IR 20, one seed)"
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


def remedies(study: Study) -> list[tuple[str, Arms, Arms]]:
    """Return for each model of a study its name, its arms, and those of the remedy that validation chooses for it."""
    found = []
    rows = {name: arms for (name, values), arms in study.rows.items() if not values and "baseline" in arms}
    for model, plain in rows.items():
        others = {name: other for name, other in rows.items() if name.startswith(f"{model}, ")}
        if others and "fedrela" in plain and validation(plain["fedrela"]) is not None:
            arms, *cut = same_seeds([plain, *others.values()])
            kept = dict(zip(others, cut, strict=True))
            best = max(kept, key=lambda name: validation(kept[name]["baseline"]) or 0)
            found += [(best, arms, kept[best])] if arms["baseline"] else []
    return found


def same_seeds(rows: Sequence[Arms]) -> list[Arms]:
    """Return rows with only the seeds that all of them have."""
    seeds = set.intersection(*({cell["seed"] for cell in arms["baseline"]} for arms in rows))
    return [{arm: [cell for cell in cells if cell["seed"] in seeds] for arm, cells in arms.items()} for arms in rows]


def tuned(studies: Sequence[Study]) -> set[str]:
    """Return the studies that another one repeats with each remedy at its own learning rate."""
    return {study.name.removesuffix(REMEDIES) for study in studies if study.name.endswith(REMEDIES) and study.is_done}


def against(studies: Sequence[Study]) -> list[Remedy]:
    """Return for every model of the tables FedReLa and the best other remedy."""
    tables = (study for study in studies if study.page == "tables" and study.cells and study.name not in tuned(studies))
    return [(study, *found) for study in tables for found in remedies(study)]


def lead(remedy: Remedy) -> Interval:
    """Return by how much FedReLa is ahead."""
    study, _, arms, other = remedy
    return difference({**arms, "other": other["baseline"]}, "other", "fedrela", headline(study))


def ahead_on_images(
    studies: Sequence[Study], arm: str = "fedrela", metric: Metric = headline
) -> dict[str, list[Interval]]:
    """Return by page of images what this arm of FedAvg gains over each other method alone."""
    rows = {
        page: [
            gains[metric(study)]
            for study in studies
            if study.page == page
            for row, gains in beside(study, studies, arm)
            if learnt(study, study.rows[row])
        ]
        for page in PLACES
    }
    return {page: gains for page, gains in rows.items() if gains}


def _ahead(gains: Iterable[Interval]) -> int:
    return sum((gain.mean or 0.0) > 0 for gain in gains)


def for_whom(studies: Sequence[Study]) -> str:
    """Say in a sentence how often another remedy does better."""
    leads = [lead(each).mean or 0.0 for each in against(studies)]
    gains, alone = (
        [gain for each in ahead_on_images(studies, arm).values() for gain in each] for arm in ("fedrela", "baseline")
    )
    words = []
    if leads:
        behind = f"{sum(mean < 0 for mean in leads)} of {plural(len(leads), 'model')}"
        words.append(f"on {PLACES['tables']} the remedy that validation samples choose is ahead of it in {behind}")
    if gains:
        ahead = f"{_ahead(gains)} of {len(gains)}, without it in {_ahead(alone)}"
        words.append(f"on benchmark images FedAvg with FedReLa is ahead of another method alone in {ahead}")
    if not words:
        return "Not measured yet."
    return f"Those who cannot change the loss or the sampling: {', and '.join(words)}."


def remedy_words(studies: Sequence[Study]) -> Iterator[str]:
    """Yield how far other remedies are ahead, a line for each kind of comparison."""
    if found := [lead(each) for each in against(studies)]:
        by = points(median(-(each.mean or 0.0) for each in found))
        clear = sum(each.high is not None and each.high < 0 for each in found)
        yield f"- On {PLACES['tables']} the remedy that validation samples choose is ahead of FedReLa by {by} in the"
        yield f"  median, beyond noise in {clear} of {plural(len(found), 'model')}."
    if moved := at_thresholds(studies):
        leads = [difference(arms, "fedrela", "baseline at threshold", "balanced") for _, _, arms in moved]
        behind, clear = sum((each.mean or 0) > 0 for each in leads), sum((each.low or 0) > 0 for each in leads)
        by = points(median(each.mean or 0.0 for each in leads))
        yield "- With two classes a decision threshold chosen on validation samples is ahead of FedReLa in"
        yield f"  {behind} of {len(leads)}, by {by} in the median, beyond noise in {clear}."
    if images := ahead_on_images(studies):
        alone = ahead_on_images(studies, "baseline")
        ahead = [
            f"{_ahead(gains)} of {len(gains)} on [{PLACES[page]}]({page}.md) (without it in {_ahead(alone[page])})"
            for page, gains in images.items()
        ]
        on_rare, without = (
            sum(map(_ahead, ahead_on_images(studies, arm, rare).values())) for arm in ("fedrela", "baseline")
        )
        numbers = {len(gain.values) for gains in images.values() for gain in gains}
        seeds = f"{min(numbers)} to " if len(numbers) > 1 else ""
        yield f"- FedAvg with FedReLa is ahead of another method alone in {listed(ahead)}"
        yield f"  by headline accuracy, on the rare classes in {on_rare} (without it in {without}) of them all"
        yield f"  ({seeds}{plural(max(numbers), 'seed')}; nearly all at FedAvg's learning rate{unlike(studies)})."


def chosen_tau(remedy: Remedy, studies: Sequence[Study]) -> tuple[str, list[Cell]]:
    """Return the tau, with or without the drop, that validation samples choose for a model, and its runs, if any."""
    study, name, _, other = remedy
    seeds = {cell["seed"] for cell in other["baseline"]}
    tried = [each for each in studies if each.name == study.name.removesuffix(REMEDIES) + TAU]
    found = {
        f"{values}{' with the drop' * (arm != 'fedrela')}": [cell for cell in cells if cell["seed"] in seeds]
        for each in tried
        for (model, values), arms in each.rows.items()
        if model == name.partition(", ")[0]
        for arm, cells in arms.items()
    }
    if not found or {len(cells) for cells in found.values()} != {len(seeds)}:
        return "", []
    best = max(found, key=lambda each: validation(found[each]) or 0)
    return best, found[best]


def remedy_table(studies: Sequence[Study]) -> Iterator[str]:
    """Yield for every model of the tables the best other remedy, and FedReLa."""
    rows = []
    for study, name, arms, other in (found := against(studies)):
        metric = headline(study)
        tau, tuned_runs = chosen_tau((study, name, arms, other), studies)
        both = {"remedy": other["baseline"], "fedrela": tuned_runs}
        rows.append(
            [
                study.title,
                name,
                *(cell_text(cells, metric) for cells in (arms["baseline"], other["baseline"], arms["fedrela"])),
                gain_text(lead((study, name, arms, other))),
                tau,
                cell_text(tuned_runs, metric) if tau else "",
                gain_text(difference(both, "remedy", "fedrela", metric)) if tau else "",
            ]
        )
    if not found:
        return
    yield "## Against other remedies"
    yield ""
    yield from remedy_words(studies)
    yield ""
    yield "Balanced accuracy of the plain model, of the remedy that validation samples choose for it, and of FedReLa on"
    yield "the plain model, with its defaults and with the tau that validation samples choose; [tables](tables.md) has"
    yield "every remedy and every tau."
    yield ""
    columns = ("plain", "remedy", "FedReLa", "FedReLa minus remedy", "tau chosen", "FedReLa, so", "minus remedy")
    yield from table(["study", "model and remedy", *columns], rows)
    both = [gain for gain in all_gains(studies, ["tables"]) if not plain(gain) and gain[0].name not in tuned(studies)]
    yield "What FedReLa adds to a remedy, over all remedies of [tables](tables.md), in points of balanced accuracy:"
    yield ""
    yield f"- without the learning-rate drop: {tally(both, 'baseline', 'fedrela', headline)};"
    yield f"- with the drop in both arms: {tally(both, 'baseline-drop', 'fedrela-drop', headline)}."
    yield ""
    yield from threshold_table(studies)


def at_thresholds(studies: Sequence[Study]) -> list[tuple[Study, str, Arms]]:
    """Return the plain models with two classes, with their balanced accuracy at the threshold of validation samples.

    Two more arms have it: ``baseline at threshold`` and ``fedrela at threshold``.
    """
    found = []
    for study, name, arms in all_gains(studies, ["tables"]):
        both = {arm: arms[arm] for arm in ("baseline", "fedrela")}
        has_both = all("at_threshold" in cell for cells in both.values() for cell in cells)
        if has_both and "," not in name and study.name not in tuned(studies):
            chosen = {f"{arm} at threshold": [c | c["at_threshold"] for c in cells] for arm, cells in both.items()}
            found.append((study, name, {**both, **chosen}))
    return found


def threshold_table(studies: Sequence[Study]) -> Iterator[str]:
    """Yield for models with two classes what a decision threshold does, with and without FedReLa."""
    found = at_thresholds(studies)
    if not found:
        return
    shown = ("baseline", "fedrela", "baseline at threshold", "fedrela at threshold")
    rows = [
        [
            study.title,
            name,
            *(cell_text(arms[arm], "balanced") for arm in shown),
            gain_text(difference(arms, "baseline at threshold", "fedrela", "balanced")),
        ]
        for study, name, arms in found
    ]
    ranks = [difference(arms, "baseline", "fedrela", "auroc").mean or 0.0 for _, _, arms in found]
    yield "With two classes the decision threshold can be moved instead: here to where the balanced accuracy of the"
    yield "clients' validation samples is highest. That needs no training, but validation samples of both classes."
    yield f"FedReLa changes the AUROC, which does not depend on the threshold, by {points(min(ranks))} to"
    yield f"{points(max(ranks))} points. Balanced accuracy:"
    yield ""
    columns = ("plain", "FedReLa", "plain, threshold", "FedReLa, threshold", "FedReLa minus plain at its threshold")
    yield from table(["study", "model", *columns], rows)


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
