"""Make the pages of docs/results from the records in results/: python docs/make_results.py, or make results."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from fedrela import plots
from fedrela.report import write_plot
from fedrela.text import plural, points

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))
from result_answer import (  # noqa: E402
    Gain,
    counted,
    median_table,
    medians,
    published_size,
    random_table,
    rising,
    where_not,
)  # fmt: skip
from result_records import (  # noqa: E402
    Study,
    cell_text,
    common,
    difference,
    headline,
    queue,
    rare,
    table,
    validation,
)  # fmt: skip
from result_remedies import for_whom, remedy_table  # noqa: E402
from result_sections import Pictures, section  # noqa: E402

PAGES = DOCS / "results"
OVERVIEW = (  # studies in the first picture
    "mammography", "credit", "kdd", "pneumonia", "chula", "fmnist-published", "fmnist-fedavg", "cifar10-lt",
    "cifar100-k10", "tinyimagenet",
)  # fmt: skip
ABOUT = {  # by page: its title, and what all its studies share
    "fashion-mnist": (
        "Fashion-MNIST with step imbalance",
        "The paper's `tab:step`, first block: 100 clients, all of the data; one, three or five of ten classes are "
        "rare. There are 60 rounds in place of 500 (scale `cpu`), except where a study has all 500. The paper does not "
        "name the network, epochs, batch size, learning rate or rare classes: `simple_cnn` and 5 epochs are ours, and "
        "rare classes 0, 2 and 4 are those of CLIMB's code. After 500 rounds FedAvg has 47.6 % on them (one seed; "
        "49.4 in its best round), printed are 50.5; on classes 7 to 9 it has 83.0.",
    ),
    "tables": (
        "Tables and medical images",
        "These are not in the paper. With the same model, when is FedReLa better than a class-weighted loss, "
        "oversampling or balanced softmax? [The first page](index.md#against-other-remedies) compares it with the "
        "remedy that validation samples choose. Balanced accuracy counts, since the test sets are imbalanced; the "
        "accuracy on the rare class is its recall.",
    ),
    "harm": (
        "Where it might not help, or hurt",
        "Fashion-MNIST with 20 clients and 1,000 samples per majority class, in which one thing is changed at a time. "
        "Classes 7, 8 and 9 are rare, which are easy to distinguish; at IR 20 they have 50 samples each. `cnn_small`, "
        "50 rounds; learning rate and epochs were chosen at IR 20 and alpha 0.3, without wrong labels.",
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
        "rounds, except with 100 clients.",
    ),
    "random": (
        "Random moves",
        "Does it matter which samples move? The arm `random` moves on each client as many labels from one class to "
        "another as FedReLa, but of samples drawn at random. The other pages say what FedReLa gains over the baseline.",
    ),
    "selection": (
        "How learning rates and epochs were chosen",
        "By the accuracy of the *baseline* alone on the clients' validation samples, with one seed that no result "
        "uses. No option of FedReLa was chosen here; it uses the choice of its baseline. Several choices lie at "
        "the edge of the values tried, so better ones may exist; ties go to the first. Two choices on long-tailed "
        "CIFAR-10 were overruled: the number of epochs, for its cost, and augmentation for FedETF.",
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

On the same machine with the same versions a repeated run has the same weights, bit for bit, and all else that is
recorded must be the same, too. On another one they may differ, and accuracies must then agree within two points, those
of groups of classes, which may have few test samples, within ten. Seconds in the records were measured while the
machine did other work, so no page quotes them.

""".splitlines()

ABOUT_ARMS = """## Words

The arms: `baseline` is the algorithm alone, `fedrela` the same with FedReLa. `-drop`: the learning
rate is divided by ten from the round of re-labelling on, as the official code does with FedReLa only. `random`: as
many labels move between the same classes, but of random samples. The headline accuracy is the overall one,
or the balanced one where the test set is imbalanced. IR and IF: the largest class over the smallest (step,
long tail). alpha: the smaller, the more clients differ.

Intervals are 95 % Student's t intervals of differences paired by seed, over two or three seeds; *beyond noise*
means that zero lies outside. They cover seeds, not the choice of test samples. With three seeds an interval can be far
too narrow by chance, and of many intervals about one in twenty excludes zero without an effect.

""".splitlines()


def index(studies: Sequence[Study], pictures: Pictures) -> Iterator[str]:
    """Yield the lines of the first page: the answer, the studies, advice, what is missing."""
    main, left_out = counted(studies)
    rows = []
    first: dict[str, Gain] = {}
    for gain in (*main, *left_out):
        first.setdefault(gain[0].name, gain)
    for study, _, arms in (first[name] for name in OVERVIEW if name in first):
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
        yield "*The same algorithm with FedReLa minus without, after the last round, in the first setting of each of"
        yield "these studies; intervals where there are several seeds. The sentences below are about all settings.*"
        yield ""
    gains = {of: medians(main, "baseline", "fedrela", of) for of in (rare, common, headline)}
    alone = medians(main, "baseline", "baseline-drop", rare)
    added = medians(main, "baseline-drop", "fedrela-drop", rare)
    settings = plural(len(main), "setting")
    yield f"- **How much?** The rare classes gain in {rising(main, rare)} of {settings}; the median gain in points is"
    yield f"  {gains[rare]}."
    yield f"- **For whom?** {for_whom(studies)}"
    yield f"- **At what price?** In the median the common classes change by {gains[common]},"
    yield f"  the headline accuracy by {gains[headline]}."
    yield "- **How much of it is the learning-rate drop?** That drop, which the official code makes with FedReLa only,"
    yield f"  alone gives the rare classes {alone} in the median;"
    yield f"  with it in both arms, FedReLa adds {added}."
    yield f"- **Where not?** {where_not(studies, main)}"
    yield ""
    several = sum(len(arms["fedrela"]) > 1 for _, _, arms in main)
    yield f"Of these {settings}, {several} have several seeds. {published_size(studies)}"
    yield ""
    yield from ABOUT_ARMS
    yield from median_table(main, left_out)
    yield from random_table(studies)
    yield from remedy_table(studies)
    yield from contents(studies)
    yield from advice(studies)
    yield from KEPT
    yield from data_sets()
    yield from missing(studies)


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
                    *(cell_text(found[best], of(study)) for of in (common, rare, headline)),
                ]
            )
    yield "## Advice"
    yield ""
    if not rows:
        yield "Not measured yet: the studies of [sensitivity](sensitivity.md) will say."
        yield ""
        return
    yield "Begin with the defaults, tau 0.05 and T at 0.8 of the rounds. With a hundred classes or more begin with a"
    yield "smaller tau; with two, try [larger ones](#against-other-remedies) on validation samples. [When not to use"
    yield "FedReLa](../how-to/when-not.md) says what to try first."
    yield ""
    yield "For each option the value with the highest balanced accuracy on validation samples, in the setting of"
    yield "[sensitivity](sensitivity.md); the last row is on CIFAR-100. The best value of every option has the"
    yield "learning-rate drop (`lr_scale = 0.1` in `[relabel]`). On Fashion-MNIST each seed has only 14 to 20"
    yield "validation samples of the rare classes, so the other leads over the defaults are worth one or two samples,"
    yield "and the defaults remain those of the paper."
    yield ""
    tested = (f"test, {words}" for words in ("common classes", "rare classes", "overall"))
    yield from table(["option", "chosen", "seeds", "balanced, validation", *tested], rows)


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
    yield "the others as [.npz files](../reference/data.md). `python results/make_data.py NAME FILE` makes mammography,"
    yield "credit, kdd and pneumonia from their public files; `python results/check_data.py` compares digests."
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
