"""What the first page of docs/results says of other remedies: losses, sampling, other methods, a decision threshold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from result_answer import PLACES, REMEDIES, Metric, all_gains, learnt, plain, tally
from result_records import Arms, Cell, Study, cell_text, difference, gain_text, headline, rare, table, validation
from result_sections import beside, unlike

from fedrela.metrics.paired import Interval
from fedrela.text import listed, plural, points

TAU = "-tau"  # ends the name of a study of FedReLa on plain models with several values of tau
Remedy = tuple[Study, str, Arms, Arms]  # a model's study, the remedy, the model's arms, the remedy's


def remedies(study: Study) -> list[tuple[str, Arms, Arms]]:
    """Return for each model of a study its name, its arms, and those of the remedy that validation chooses for it."""
    found = []
    rows = {name: arms for (name, values), arms in study.rows.items() if not values and "baseline" in arms}
    for model, own in rows.items():
        others = {name: other for name, other in rows.items() if name.startswith(f"{model}, ")}
        if others and "fedrela" in own and validation(own["fedrela"]) is not None:
            arms, *cut = same_seeds([own, *others.values()])
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


def lead(remedy: Remedy, treated: Sequence[Cell] = ()) -> Interval:
    """Return by how much FedReLa is ahead, with its defaults if no runs of it are given."""
    study, _, arms, other = remedy
    pair = {"remedy": other["baseline"], "fedrela": [*treated] or arms["fedrela"]}
    return difference(pair, "remedy", "fedrela", headline(study))


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
    gains, alone = (
        [gain for each in ahead_on_images(studies, arm).values() for gain in each] for arm in ("fedrela", "baseline")
    )
    words = []
    if (models := leads(studies))[0]:
        behind, tuned_behind = ([(each.mean or 0.0) < 0 for each in found] for found in models)
        with_tau = (
            f", with a tau that they choose in {sum(tuned_behind)} of {len(tuned_behind)}" if tuned_behind else ""
        )
        words.append(
            f"on {PLACES['tables']} the remedy that validation samples choose is ahead of FedReLa's defaults in "
            f"{sum(behind)} of {plural(len(behind), 'model')}{with_tau}"
        )
    if gains:
        ahead = f"{_ahead(gains)} of {len(gains)}, without it in {_ahead(alone)}"
        words.append(f"on benchmark images FedAvg with FedReLa is ahead of another method alone in {ahead}")
    if not words:
        return "Not measured yet."
    return f"Those who cannot change the loss or the sampling: {'; '.join(words)}."


def leads(studies: Sequence[Study]) -> tuple[list[Interval], list[Interval]]:
    """Return FedReLa's lead over the best remedy of each model: with its defaults, and with a chosen tau."""
    found = against(studies)
    runs = [(each, chosen_tau(each, studies)[1]) for each in found]
    return [lead(each) for each in found], [lead(each, cells) for each, cells in runs if cells]


def remedy_words(studies: Sequence[Study]) -> Iterator[str]:
    """Yield how far other remedies are ahead, a line for each kind of comparison."""
    for whose, found in zip(("FedReLa's defaults", "FedReLa with a tau that they choose"), leads(studies), strict=True):
        if found:
            ahead = sum((each.mean or 0.0) < 0 for each in found)
            clear = sum((each.high or 0.0) < 0 for each in found)
            yield f"- On {PLACES['tables']} the remedy that validation samples choose is ahead of {whose} in {ahead}"
            yield f"  of {plural(len(found), 'model')}, beyond noise in {clear}; the median difference is"
            yield f"  {points(median(-(each.mean or 0.0) for each in found))} points."
    if moved := at_thresholds(studies):
        gains = [difference(arms, "fedrela", "baseline at threshold", "balanced") for _, _, arms in moved]
        behind, clear = sum((each.mean or 0) > 0 for each in gains), sum((each.low or 0) > 0 for each in gains)
        by = points(median(each.mean or 0.0 for each in gains))
        yield "- With two classes a decision threshold chosen on validation samples is ahead of FedReLa's defaults in"
        yield f"  {behind} of {len(gains)}, by {by} in the median, beyond noise in {clear}."
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
    found = {
        f"{values}{' with the drop' * (arm != 'fedrela')}": [cell for cell in cells if cell["seed"] in seeds]
        for each in studies
        if each.name == study.name.removesuffix(REMEDIES) + TAU and each.is_done
        for (model, values), arms in each.rows.items()
        if model == name.partition(", ")[0]
        for arm, cells in arms.items()
    }
    best = max(found, key=lambda each: validation(found[each]) or 0, default="")
    return best, found.get(best, [])


def remedy_table(studies: Sequence[Study]) -> Iterator[str]:
    """Yield for every model of the tables the best other remedy, and FedReLa."""
    rows = []
    for each in (found := against(studies)):
        study, name, arms, other = each
        tau, runs = chosen_tau(each, studies)
        compared = (arms["baseline"], other["baseline"], arms["fedrela"])
        rows.append(
            [
                study.title.partition(",")[0],
                name,
                *(cell_text(cells, headline(study)) for cells in compared),
                gain_text(lead(each)),
                *((tau, cell_text(runs, headline(study)), gain_text(lead(each, runs))) if tau else ("", "", "")),
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
    columns = ("plain", "remedy", "FedReLa", "FedReLa minus remedy", "tau chosen", "FedReLa with it", "minus remedy")
    yield from table(["study", "model and remedy", *columns], rows)
    if any(each.name == f"mammography{TAU}" and each.cells for each in studies):
        yield f"![accuracy at each tau, mammography](mammography{TAU}-curves.svg)"
        yield ""
        yield "*Mammography: more labels may move, and more of the rare class is found, until too many have moved.*"
        yield ""
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
            study.title.partition(",")[0],
            name,
            *(cell_text(arms[arm], "balanced") for arm in shown),
            gain_text(difference(arms, "baseline at threshold", "fedrela", "balanced")),
            cell_text(runs, "balanced") if (runs := chosen_tau((study, name, arms, arms), studies)[1]) else "",
        ]
        for study, name, arms in found
    ]
    ranks = [difference(arms, "baseline", "fedrela", "auroc").mean or 0.0 for _, _, arms in found]
    yield "With two classes the decision threshold can be moved instead: here to where the balanced accuracy of the"
    yield "clients' validation samples is highest. That needs no training, but validation samples of both classes."
    yield f"FedReLa changes the AUROC, which does not depend on the threshold, by {points(min(ranks))} to"
    yield f"{points(max(ranks))} points. Balanced accuracy:"
    yield ""
    columns = (
        *("plain", "FedReLa", "plain, threshold", "FedReLa, threshold", "FedReLa minus plain at its threshold"),
        "FedReLa, tau chosen",
    )
    yield from table(["study", "model", *columns], rows)
