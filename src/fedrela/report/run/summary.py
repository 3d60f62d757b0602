"""What was run and what came of it: the title, one sentence, and the few figures that a page begins with."""

from __future__ import annotations

from typing import Any

from fedrela.report.page.parts import Block, Facts, Section, Text
from fedrela.report.run.story import Story
from fedrela.report.run.words import listed, many, name, percent


def title(story: Story) -> str:
    """Return a title: the data, the baseline, and whether it was helped."""
    helped = ""
    if story.enabled:
        helped = " with FedReLa" if story.config["relabel"]["moves"] == "fedrela" else " with random moves"
    return f"{name(story.manifest.data['source'])}: {name(story.manifest.algorithm['name'])}{helped}"


def lead(story: Story) -> str:
    """Return what was run, in one sentence."""
    data, train = story.manifest.data, story.config["train"]
    many_samples = f"{many(story.samples, 'training sample')} of {many(len(story.classes), 'class')}"
    who = f"{many_samples} at {many(data['clients'], 'client')} ({_imbalance(data['recipe'])})"
    model = name(story.config["model"]["name"])
    share = f" with {train['participation']:.3g} of the clients a round" if train["participation"] < 1 else ""
    baseline = f"{name(story.manifest.algorithm['name'])} with {model} for {many(story.all_rounds, 'round')}{share}"
    return f"{name(data['source'])}, {who}: {baseline}; {_relabelling(story)}; seed {story.config['seed']}."


def _imbalance(recipe: dict[str, Any]) -> str:
    imbalance, partition = recipe["imbalance"], recipe["partition"]
    kind = {
        "step": f"step imbalance, ratio {imbalance.get('ratio') or 1:g}",
        "long_tail": f"long tail, factor {imbalance.get('factor') or 1:g}",
    }.get(imbalance["kind"], "imbalanced as they are")
    alpha = f" with alpha {partition['alpha']:g}" if partition.get("alpha") is not None else ""
    way = {"dirichlet": "Dirichlet", "iid": "IID"}.get(partition["kind"], name(partition["kind"]))
    return f"{kind}; {way} partition{alpha}"


def _relabelling(story: Story) -> str:
    table = story.config["relabel"]
    rate = "" if table["lr_scale"] == 1 else f", with the learning rate times {table['lr_scale']:g}"
    if not story.enabled:
        return f"nobody re-labelled{rate and f'{rate} from round {story.first} on'}"
    tau = table["tau"]
    level = f"tau {tau:g}" if isinstance(tau, int | float) else "a tau of each client's own"
    again = f" and every {many(table['period'], 'round')}" if table["period"] else ""
    what = "re-labelled" if table["moves"] == "fedrela" else "moved as many labels of random samples, as a control,"
    return f"clients {what} from round {story.first}{again} on ({level}){rate}"


def opening(story: Story) -> Section:
    """Return what stands above the table of contents."""
    blocks: list[Block] = []
    if story.status != "done":
        blocks.append(Text(f"This run is unfinished: {story.status} of {story.all_rounds}.", "warning"))
    figures = _figures(story)
    if figures:
        blocks.append(Facts(figures, large=True))
        blocks.append(Text(_meaning(story), "muted"))
    elif story.rounds:
        blocks.append(Text("There is no test set, so this page tells no accuracy."))
    return Section("summary", "", blocks)


def _figures(story: Story) -> list[tuple[str, str]]:
    accuracy = story.accuracy
    if accuracy is None:
        return []
    pairs = [(story.headline, percent(accuracy[story.headline]))]
    pairs += [(name(group), percent(share)) for group, share in accuracy["groups"].items()]
    pairs += [(key.upper(), f"{accuracy[key]:.3f}") for key in ("auroc", "auprc") if accuracy.get(key) is not None]
    if story.enabled:
        moved = "private" if story.moved is None else f"{story.moved:,}"
        pairs.append(("labels moved", moved))
    return pairs


def _meaning(story: Story) -> str:
    accuracy = story.accuracy or {}
    which = "Balanced accuracy (the mean over classes)" if story.headline == "balanced" else "Accuracy"
    said = [f"{which} on the test set after round {story.last_scored}."]
    if empty := [name(group) for group, share in accuracy["groups"].items() if share is None]:
        said.append(f"The test set has no sample of {listed(empty)} classes.")
    if story.enabled and story.moved is not None:
        said.append(f"{story.moved:,} of {many(story.samples, 'label')} of training samples are other ones now.")
    if story.enabled and story.moved is None:
        said.append("How many labels moved is known to the clients alone.")
    result = story.result or {}
    if "validation" in result:
        share = percent(result["validation"]["balanced"])
        said.append(f"On what clients hold back, balanced accuracy is {share}.")
    if "local" in result:
        said.append(f"The mean of the clients' own accuracies is {percent(result['local']['mean'])}.")
    return " ".join(said)
