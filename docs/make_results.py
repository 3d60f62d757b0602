"""Make the pages of docs/results from the records in results/: python docs/make_results.py, or make results."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from fedrela import plots
from fedrela.report import write_plot
from fedrela.text import plural, points

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
from result_records import (  # noqa: E402
    Arms,
    Study,
    cell_text,
    common,
    difference,
    gain_text,
    headline,
    queue,
    rare,
    table,
    validation,
)  # fmt: skip
from result_sections import Pictures, beside, section  # noqa: E402

PAGES = DOCS / "results"
REMEDIES = "-remedies"  # ends the name of a study that has the plain models of another one, too
# What clients can do about imbalance in place of FedReLa.
PEERS = ("Re-weighting", "Oversampling", "SMOTE", "FedMix", "Balanced softmax")
OVERVIEW = (  # studies in the first picture
    "mammography", "credit", "kdd", "pneumonia", "chula", "fmnist-published", "fmnist-fedavg", "cifar10-lt",
    "cifar100-k10", "tinyimagenet",
)  # fmt: skip
ABOUT = {  # by page: its title, and what all its studies share
    "fashion-mnist": (
        "Fashion-MNIST with step imbalance",
        "The paper's `tab:step`, first block: 100 clients, all of the data; one or three of ten classes are rare. "
        "There are 60 rounds in place of 500 (scale `cpu`), except where a study has all 500. The paper does not "
        "name the network, epochs, batch size, learning rate or rare classes: `simple_cnn` and 5 epochs are ours, and "
        "rare classes 0, 2 and 4 are those of CLIMB's code, which fit the printed accuracies "
        "([why](../how-to/reproduce.md)).",
    ),
    "tables": (
        "Tables and medical images",
        "These are not in the paper. With the same model, when is FedReLa better than a class-weighted loss, "
        "oversampling or balanced softmax? Balanced accuracy counts, since the test sets are imbalanced; the accuracy "
        "on the rare class is its recall.",
    ),
    "harm": (
        "Where it might not help, or hurt",
        "Fashion-MNIST with 20 clients and 1,000 samples per majority class, in which one thing is changed at a time.",
    ),
    "sensitivity": (
        "Sensitivity",
        "The setting of [harm](harm.md), with one option of FedReLa changed at a time. [The first "
        "page](index.md#advice) says which values validation samples, a tenth of every client's, would choose.",
    ),
    "cifar-10": (
        "Long-tailed CIFAR-10",
        "The paper's `tab:lt`, FedETF and FedLoGe, with FedAvg and others in the same settings: 40 clients, all "
        "samples of the long tail, `cnn_small` in place of ResNet-18, and fewer rounds.",
    ),
    "cifar-100": (
        "Long-tailed CIFAR-100 and Tiny-ImageNet",
        "The paper's `tab:lt` and `tab:cifar100_lt_clients` on CIFAR-100, and a long tail of Tiny-ImageNet in place "
        "of ImageNet-LT: all samples, the paper's clients, `cnn_small` in place of ResNet-34 and ResNet-50, and fewer "
        "rounds.",
    ),
    "selection": (
        "How learning rates and epochs were chosen",
        "By the accuracy of the *baseline* alone on the clients' validation samples, with seeds that no result uses. "
        "No option of FedReLa was chosen here.",
    ),
}
KEPT = """## How results are kept

`results/` has a folder per study: `study.toml` says what was run, and `summary.json` has a record per run with its
accuracies, labels moved, digests of configuration and weights, and versions. These pages are made from those files
alone (`make results`).

```sh
# needs a clone of the repository, and the data sets
fedrela results list     # the queue: what is recorded, and what is left
fedrela results run      # run what is left, in the order of results/queue.toml; it can be resumed
fedrela results verify results/mammography --cells 2 --seed 7   # repeat two recorded runs, and compare
```

On the same machine with the same versions a repeated run has the same weights, bit for bit; elsewhere accuracies must
agree within two points. Seconds in the records were measured while the machine did other work, so no page quotes them.

""".splitlines()

ABOUT_ARMS = """The arms: `baseline` is the algorithm alone, `fedrela` the same with FedReLa. `-drop`: the learning
rate is divided by ten from the round of re-labelling on, as the official code does with FedReLa only. `random`: as
many labels move between the same classes, but of random samples. The headline accuracy is the overall one,
or the balanced one where the test set is imbalanced. IR and IF: the largest class over the smallest (step,
long tail). alpha: the smaller, the more clients differ.

""".splitlines()

Gain = tuple[Study, str, Arms]
Remedy = tuple[Study, str, Arms, Arms]  # a model's study, the remedy, the model's arms, the remedy's


def all_gains(studies: Sequence[Study], pages: Sequence[str]) -> list[Gain]:
    """Return every row of the pages that has FedReLa and its baseline: study, name and arms."""
    return [
        (study, ", ".join(filter(None, (baseline, study.setting(arms)))), arms)
        for study in studies
        if study.page in pages and study.cells
        for (baseline, _), arms in study.rows.items()
        if {"baseline", "fedrela"} <= arms.keys()
    ]


def tally(gains: Sequence[Gain], base: str, treated: str, metric: Callable[[Study], str]) -> str:
    """Say what a pair of arms gains over all rows: the mean, the range, and in how many rows beyond noise."""
    found = [
        difference(arms, base, treated, metric(study)) for study, _, arms in gains if {base, treated} <= arms.keys()
    ]
    means = [each.mean for each in found if each.mean is not None]
    tested = [each for each in found if each.low is not None]
    if not means:
        return "not measured yet"
    up, down = (sum(sign * each.low > 0 and sign * each.high > 0 for each in tested) for sign in (1, -1))
    mean, settings = points(sum(means) / len(means)), plural(len(means), "setting")
    ends = f"from {points(min(means))} to {points(max(means))}"
    noise = f"of the {len(tested)} with several seeds {up} rise, {down} fall beyond noise"
    return f"{mean} points on average over {settings} ({ends}; {noise})"


def plain(gain: Gain) -> bool:
    """Whether nothing else is done about imbalance: remedies have a comma in their name, or are peers."""
    study, name, arms = gain
    return arms["baseline"][0]["baseline"] not in PEERS and (study.page != "tables" or "," not in name)


def index(studies: Sequence[Study], pictures: Pictures) -> Iterator[str]:
    """Yield the lines of the first page: the answer, the studies, advice, what is missing."""
    main = [gain for gain in all_gains(studies, ("fashion-mnist", "cifar-10", "cifar-100", "tables")) if plain(gain)]
    main = [gain for gain in main if not gain[0].name.endswith(REMEDIES)]
    rows = []
    first: dict[str, Gain] = {}
    for gain in main:
        if gain[0].name in OVERVIEW:
            first.setdefault(gain[0].name, gain)
    for study, _, arms in first.values():
        name = arms["baseline"][0]["baseline"]
        words = {"common classes": common, "rare classes": rare, "headline accuracy": headline}
        for word, metric in ((word, of(study)) for word, of in words.items()):
            found = difference(arms, "baseline", "fedrela", metric)
            rows.append((f"{study.short}, {name}", word, found.mean, found.low, found.high))
    yield "# What FedReLa does, measured"
    yield ""
    if rows:
        pictures["overview"] = partial(plots.gains, rows)
        yield "![gains by FedReLa in points, with 95 % intervals](overview.svg)"
        yield ""
        yield "Gains over the same algorithm without FedReLa, in the first setting of one study per data set; the"
        yield "sentences below are about all studies."
        yield ""
    yield f"- **How much?** The rare classes gain {tally(main, 'baseline', 'fedrela', rare)};"
    yield f"  the headline accuracy gains {tally(main, 'baseline', 'fedrela', headline)}."
    yield f"- **At what price?** The common classes change by {tally(main, 'baseline', 'fedrela', common)}."
    alone, beside = tally(main, "baseline", "baseline-drop", rare), tally(main, "baseline-drop", "fedrela-drop", rare)
    yield f"- **How much of it is the learning-rate drop?** Alone it gives the rare classes {alone}."
    yield f"  With the drop in both arms FedReLa adds {beside}."
    yield f"- **For whom?** {for_whom(studies)}"
    yield f"- **Where not?** {where_not(studies)}{fallen(main)}"
    yield ""
    yield from ABOUT_ARMS
    yield from remedy_table(studies)
    yield from contents(studies)
    yield from advice(studies)
    yield from KEPT
    yield from data_sets()
    yield from missing(studies)


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


def lead(remedy: Remedy) -> float:
    """Return by how much FedReLa is ahead."""
    study, _, arms, other = remedy
    return difference({**arms, "other": other["baseline"]}, "other", "fedrela", headline(study)).mean or 0.0


def for_whom(studies: Sequence[Study]) -> str:
    """Say how FedReLa compares with the best other remedy on the same model, and with every remedy for images."""
    found = [lead(each) for each in against(studies)]
    if not found:
        return "Not measured yet."
    words = [
        f"For those who leave loss and sampling as they are: the best other remedy on the same model is ahead in "
        f"{sum(gain < 0 for gain in found)} of {len(found)} cases on tables and medical images, by "
        f"{points(-sum(found) / len(found))} points of balanced accuracy on average ([below](#against-other-remedies))"
    ]
    for study in studies:
        if rows := list(beside(study, studies)):
            ahead = sum((gains[headline(study)].mean or 0) > 0 for _, gains in rows)
            place = f"[{study.short}]({study.page}.md)"
            words.append(f"on {place} FedAvg with it is ahead of {ahead} of {len(rows)} others")
    return f"{'; '.join(words)}."


def remedy_table(studies: Sequence[Study]) -> Iterator[str]:
    """Yield for every model of the tables the best other remedy, and FedReLa."""
    rows = [
        [
            study.title,
            name,
            cell_text(arms["baseline"], headline(study)),
            cell_text(other["baseline"], headline(study)),
            cell_text(arms["fedrela"], headline(study)),
            points(lead((study, name, arms, other))),
        ]
        for study, name, arms, other in against(studies)
    ]
    if not rows:
        return
    yield "## Against other remedies"
    yield ""
    yield "Balanced accuracy of the plain model, of the remedy that validation samples choose for it, and of FedReLa on"
    yield "the plain model; [tables](tables.md) has every remedy."
    yield ""
    yield from table(["study", "model and remedy", "plain", "remedy", "FedReLa", "FedReLa minus remedy"], rows)
    both = [gain for gain in all_gains(studies, ["tables"]) if not plain(gain) and gain[0].name not in tuned(studies)]
    yield "What FedReLa adds to a remedy, over all remedies of [tables](tables.md), in points of balanced accuracy:"
    yield ""
    yield f"- without the learning-rate drop: {tally(both, 'baseline', 'fedrela', headline)};"
    yield f"- with the drop in both arms: {tally(both, 'baseline-drop', 'fedrela-drop', headline)}."
    yield ""


def run_digests(arms: Arms) -> tuple[str, ...]:
    """Return what identifies the runs of a row: several studies have the default setting."""
    return tuple(cell["weights_sha256"] for arm in ("baseline", "fedrela") for cell in arms[arm])


def where_not(studies: Sequence[Study]) -> str:
    """Say in how many settings the headline accuracy falls, and name the worst."""
    harm = {
        run_digests(arms): (study, name, arms) for study, name, arms in all_gains(studies, ("harm", "sensitivity"))
    }.values()
    if not harm:
        return "Not measured yet."
    found = [(difference(arms, "baseline", "fedrela", headline(study)), name) for study, name, arms in harm]
    worse = sorted((each for each in found if (each[0].mean or 0) < 0), key=lambda each: each[0].mean or 0)
    clear = [each for each in worse if each[0].high is not None and each[0].high < 0]
    named = "; ".join(f"{name} {gain_text(gain)}" for gain, name in clear or worse[:2])
    where = "[harm](harm.md) and [sensitivity](sensitivity.md)"
    fall = f"The headline accuracy falls in {len(worse)} of {len(found)} settings of {where}"
    return f"{fall}, beyond noise in {len(clear)}{': ' if named else ''}{named}."


def fallen(gains: Sequence[Gain]) -> str:
    """Name the rows among all in which the headline accuracy falls most."""
    found = [(difference(arms, "baseline", "fedrela", headline(study)), study, name) for study, name, arms in gains]
    worse = sorted((each for each in found if (each[0].mean or 0) < 0), key=lambda each: each[0].mean or 0)
    named = "; ".join(f"{study.short}, {name} {gain_text(gain)}" for gain, study, name in worse[:3])
    return f" Above, it falls in {len(worse)} of {len(found)}, most for {named}." if worse else ""


def advice(studies: Sequence[Study]) -> Iterator[str]:
    """Yield for each option the value that validation chooses, with what the test set says of it."""
    rows = []
    for study in (study for study in studies if study.page == "sensitivity" and study.cells):
        found = {
            (v, arm): arms[arm]
            for (_, v), arms in study.rows.items()
            for arm in ("fedrela", "fedrela-drop")
            if arm in arms
        }
        if found:
            best = max(found, key=lambda key: validation(found[key]) or 0)
            rows.append(
                [
                    study.title,
                    " with the drop".join((best[0], "")) if best[1] != "fedrela" else best[0],
                    str(len(found[best])),
                    points(validation(found[best])).removeprefix("+"),
                    *(cell_text(found[best], metric) for metric in study.metrics),
                ]
            )
    yield "## Advice"
    yield ""
    if not rows:
        yield "Not measured yet: the studies of [sensitivity](sensitivity.md) will say."
        yield ""
        return
    yield "For each option the value with the highest balanced accuracy on validation samples, in the setting of"
    yield "[sensitivity](sensitivity.md). The learning-rate drop (`lr_scale = 0.1` in `[relabel]`) is chosen for every"
    yield "option. Otherwise the lead over the default is often smaller than the spread between seeds, so the defaults"
    yield "remain those of the paper."
    yield ""
    metrics = next(study.metrics for study in studies if study.page == "sensitivity" and study.cells)
    yield from table(
        ["option", "chosen", "seeds", "balanced, validation", *(f"test {metric}" for metric in metrics)], rows
    )


def contents(studies: Sequence[Study]) -> Iterator[str]:
    """Yield the list of pages and studies."""
    yield "## The studies"
    yield ""
    yield "```{toctree}"
    yield ":maxdepth: 1"
    yield ""
    yield from ABOUT
    yield "```"
    yield ""
    rows = [
        [study.title, f"[{study.page}]({study.page}.md)", f"{len(study.cells)} of {study.summary['runs']}"]
        for study in studies
        if study.cells
    ]
    yield from table(["study", "page", "runs recorded"], rows)


def missing(studies: Sequence[Study]) -> Iterator[str]:
    """List the studies that are not complete."""
    if left := [study for study in studies if not study.is_done]:
        yield "## What is missing"
        yield ""
        for study in left:
            runs = f"{len(study.cells)} of {study.summary['runs']} runs" if study.cells else "not begun"
            yield f"- [{study.title}]({study.page}.md): {runs}; about {study.minutes:g} minutes of one core in all."
        yield ""


def data_sets() -> Iterator[str]:
    """Say where the data sets of the studies come from."""
    entries = tomllib.loads((DOCS.parent / "results/data.toml").read_text()).values()
    yield "## The data sets"
    yield ""
    yield "Data sets are looked for in the folder `data`: Fashion-MNIST and CIFAR as `fedrela data fetch` puts them,"
    yield "the others as [.npz files](../reference/data.md). `python results/check_data.py` compares their digests."
    yield ""
    rows = [[each["title"], each["origin"], each["made"], f"`{each['sha256'][:16]}`"] for each in entries]
    yield from table(["data", "origin", "how the arrays were made", "SHA-256 begins with"], rows)


def pages() -> tuple[dict[str, str], Pictures]:
    """Return every page by its file name, and every picture by its name."""
    studies, pictures = queue(), {}
    made: dict[str, str] = {}
    for page, (title, about) in ABOUT.items():
        lines = [f"# {title}", "", about, ""]
        for study in (study for study in studies if study.page == page):
            lines += section(study, pictures, studies)
        made[f"{page}.md"] = "\n".join(lines)
    made["index.md"] = "\n".join(index(studies, pictures))
    return {name: page.rstrip("\n") + "\n" for name, page in made.items()}, pictures


def main() -> None:
    made, pictures = pages()
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.*"):
        if old.name not in made and old.stem not in pictures:
            old.unlink()
    for name, page in made.items():
        (PAGES / name).write_text(page)
    for name, draw in pictures.items():
        write_plot(PAGES / f"{name}.svg", draw, overwrite=True)
    print(f"{len(made)} pages and {len(pictures)} pictures in {PAGES}")


if __name__ == "__main__":
    main()
