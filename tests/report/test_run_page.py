"""The page of a run: what it says is what the folder says, of every kind of run, finished or not."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

from fedrela.core import Schedule
from fedrela.data.sources import from_arrays
from fedrela.errors import DataError, IntegrityError
from fedrela.experiment import begin
from fedrela.experiment import run as run_experiment
from fedrela.plots.folders import RunData
from fedrela.plots.style import new_figure
from fedrela.records import RoundRecord
from fedrela.report.page import Page, Pictures, Table, Text, render
from fedrela.report.run_page import run_page
from fedrela.report.writing import sample_figures, write_figures, write_report
from fedrela.runfolder import RunFolder
from fedrela.text import probability
from helpers.small_runs import CLASSES, COLUMNS, small
from plots.test_hostile_names import HOSTILE
from report.test_page import check_page

torch.set_num_threads(1)
KEYS = [
    "summary", "rounds", "classes", "confusion", "moves", "samples", "clients", "scores", "cost", "lost",
    "configuration",
]  # fmt: skip


@pytest.fixture(scope="module")
def tabular(tmp_path_factory):
    return run_experiment(small(), out=tmp_path_factory.mktemp("tabular") / "run").folder


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    data = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]}}
    config = small(data=data, train={"rounds": 4, "epochs": 1}, relabel={"start": 3, "tau": 0.1})
    return run_experiment(config, out=tmp_path_factory.mktemp("pictures") / "run").folder


def page_of(folder, **options) -> Page:
    return run_page(RunFolder.open(folder), **options)


def section(page: Page, key: str):
    return next(part for part in page.sections if part.key == key)


def words(page: Page, key: str) -> str:
    return " ".join(block.text for block in section(page, key).blocks if isinstance(block, Text))


def test_all_sections_in_their_order_and_what_they_say(tabular):
    page, result = page_of(tabular), json.loads((tabular / "result.json").read_text())
    assert [part.key for part in page.sections] == KEYS
    assert page.title == "gaussians: FedAvg with FedReLa"
    assert page.lead.endswith("FedAvg with mlp for 6 rounds; clients re-labelled from round 4 on (tau 0.2); seed 5.")
    figures = dict(section(page, "summary").blocks[0].pairs)
    assert figures["overall"] == f"{100 * result['accuracy']['overall']:.1f} %"
    assert figures["minority"] == f"{100 * result['accuracy']['groups']['minority']:.1f} %"
    assert figures["labels moved"] == str(result["moved"]) != "0"
    assert {figure.name for figure in page.figures} == {
        "accuracy", "classes", "confusion-before", "confusion-after", "confusion-difference", "flow", "targets",
        "counts", "clients", "scores-0", "scores-1", "time",
    }  # fmt: skip
    check_page(render(page))


def test_before_is_round_t_minus_one_and_after_the_last_round(tabular):
    rounds = RunFolder.open(tabular).rounds()
    table = next(block for block in section(page_of(tabular), "classes").blocks if isinstance(block, Table))
    before, after = (np.array(rounds[number - 1]["accuracy"]["per_class"]) for number in (3, 6))
    at = {column: place for place, column in enumerate(table.columns)}
    assert [row[at["before"]] for row in table.rows] == [f"{100 * share:.1f} %" for share in before]
    assert [row[at["after"]] for row in table.rows] == [f"{100 * share:.1f} %" for share in after]
    moved = json.loads((tabular / "relabelling.json").read_text())
    assert [row[at["labels after"]] for row in table.rows] == [f"{number:,}" for number in moved["after"]]


def test_the_gallery_shows_samples_of_several_clients(tabular, pictures):
    for folder in (tabular, pictures):
        arrays = np.load(folder / "gallery.npz")
        shown = next(block for block in section(page_of(folder), "samples").blocks if isinstance(block, Pictures))
        facts = [dict(item.facts) for item in shown.items]
        assert len(facts) == len(arrays["old"])
        assert [fact["client"] for fact in facts] == [f"{client}" for client in arrays["client"]]
        assert len({fact["client"] for fact in facts}) > 2
        assert [fact["posterior"] for fact in facts] == [probability(value) for value in arrays["posterior"]]
        assert [fact["re-labelling"] for fact in facts] == [probability(value) for value in arrays["rho"]]
    assert all(item.png is not None and item.alt for item in shown.items)
    assert page_of(pictures).title == "digits: FedAvg with FedReLa"


def test_moves_drawn_at_random_are_shown_beside_the_most_probable(tmp_path):
    pictures = {"source": "digits", "options": {}, "imbalance": {"kind": "step", "ratio": 20, "minority": [0, 1, 2]}}
    config = small(data=pictures, relabel={"start": 2, "tau": 0.2}, report={"gallery_size": 6})
    folder = run_experiment(config, out=tmp_path / "run", workers=1).folder
    arrays = np.load(folder / "gallery.npz")
    probable, drawn = (block for block in section(page_of(folder), "samples").blocks if isinstance(block, Pictures))
    assert len(drawn.items) == len(probable.items) == 6
    facts = [dict(item.facts) for item in drawn.items]
    assert [fact["re-labelling"] for fact in facts] == [probability(value) for value in arrays["drawn_rho"]]
    assert arrays["drawn_rho"].mean() < arrays["rho"].mean()
    written = write_figures(folder, tmp_path / "figures", ("png",))
    assert {"samples-column.png", "samples-page.png"} <= {path.name for path in written}
    (figure,) = sample_figures(RunData(RunFolder.open(folder)))
    ax = new_figure(figure.draw).axes[0]
    assert len(ax.images) == 12
    assert "below: moves drawn at random" in ax.get_title(loc="left")


def test_of_a_table_row_the_most_deviant_features_are_shown_by_name(tabular):
    shown = next(block for block in section(page_of(tabular), "samples").blocks if isinstance(block, Pictures))
    names = RunFolder.open(tabular).manifest["data"]["feature_names"]
    row = np.load(tabular / "gallery.npz")["samples"][0]
    order = np.argsort(-np.abs(row), kind="stable")[:5]
    expected = [(names[j], f"{row[j]:+.2f}".replace("-", "−")) for j in order]
    assert list(shown.items[0].facts)[3:] == expected
    assert shown.items[0].png is None
    assert "in standard deviations" in shown.caption


def test_without_samples_nothing_of_them_is_in_the_page(tabular, pictures):
    for folder in (tabular, pictures):
        page = page_of(folder, samples=False)
        assert words(page, "samples") == "Samples are left out of this page."
        assert not any(isinstance(block, Pictures) for block in section(page, "samples").blocks)
        assert "data:image" not in render(page)


def test_a_copy_elsewhere_gives_the_same_bytes_and_names_no_place(tabular, tmp_path):
    shutil.copytree(tabular, tmp_path / "else where")
    for folder in (tabular, tmp_path / "else where"):
        write_report(folder)
    first, second = ((folder / "report.html").read_bytes() for folder in (tabular, tmp_path / "else where"))
    assert first == second
    assert str(tabular.parent).encode() not in first
    RunFolder.open(tabular).check()


def test_only_the_cost_depends_on_the_machine(tabular, tmp_path):
    shutil.copytree(tabular, tmp_path / "run")
    baseline, timing = tmp_path / "run" / "machine.json", tmp_path / "run" / "timing.jsonl"
    baseline.write_text(baseline.read_text().replace('"cores": ', '"cores": 7'))
    slower = [
        {key: 2 * value if "seconds" in key else value for key, value in record.items()} for record in lines(timing)
    ]
    timing.write_text("".join(json.dumps(record) + "\n" for record in slower))
    here, there = page_of(tabular), page_of(tmp_path / "run")
    differ = [a.key for a, b in zip(here.sections, there.sections, strict=True) if render_one(a) != render_one(b)]
    assert differ == ["cost"]


def lines(path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def render_one(part) -> str:
    return render(Page("", "", [part]))


@pytest.mark.parametrize("start", [1, 4, 6, 0.1, 0.5, 0.58, 0.8, 0.01, 1.0])
def test_t_is_that_of_the_schedule(tabular, start):
    run = RunData(RunFolder.open(tabular))
    run.config["relabel"]["start"] = start
    assert run.first == Schedule(start=start).first(6)


OTHERS = {
    "off": ({"relabel": {"enabled": False}}, "moves", "Re-labelling was off in this run."),
    "dropped rate": ({"relabel": {"enabled": False, "lr_scale": 0.1}}, "samples", "Re-labelling was off in this run."),
    "first round": ({"relabel": {"start": 1}}, "classes", "before which the model was untrained"),
    "last round": ({"relabel": {"start": 1.0}}, "rounds", "From round 5 to round 6"),
    "again": ({"relabel": {"period": 1}}, "moves", "at 5 clients: "),
    "random": ({"relabel": {"moves": "random"}}, "moves", "labels moved"),
    "minmax": ({"relabel": {"normalize": "minmax"}}, "scores", "With normalize = minmax"),
    "no moves": ({"relabel": {"tau": 0.0}}, "samples", "No label moved."),
    "no gallery": ({"report": {"samples": False}}, "samples", "Samples were not kept"),
    "seldom scored": ({"train": {"evaluate_every": 4}}, "rounds", "After round 6"),
    "some clients": ({"train": {"participation": 0.4}}, "lost", "No client was lost"),
    "validation": (
        {"data": {"validation": 0.2}},
        "summary",
        "On the clients' validation samples, balanced accuracy is",
    ),
    "local test": ({"train": {"local_test": True}}, "summary", "The mean of the clients' own accuracies is"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_every_kind_of_run_has_a_page(tmp_path, kind):
    tables, key, said = OTHERS[kind]
    page = page_of(run_experiment(small(**tables), out=tmp_path / "run").folder)
    assert [part.key for part in page.sections] == KEYS
    assert said in words(page, key)
    check_page(render(page))


@pytest.mark.parametrize(("classes", "minority"), [(2, [0]), (130, [0, 1, 2])])
def test_few_and_many_classes(tmp_path, classes, minority):
    options = {"samples": 30, "test_samples": 4, "classes": classes, "dimension": max(classes, 6), "separation": 2.5}
    data = {"options": options, "imbalance": {"kind": "step", "ratio": 3, "minority": minority}}
    config = small(data=data, train={"rounds": 2}, relabel={"start": 2})
    page = page_of(run_experiment(config, out=tmp_path / "run").folder)
    names = [name for name, _ in section(page, "summary").blocks[0].pairs]
    assert ("AUROC" in names) == (classes == 2)
    html = render(page)
    check_page(html)
    assert len(html) < 3_000_000


def arrays(names):
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(240, COLUMNS)).astype(np.float32), rng.integers(0, CLASSES, 240)
    return from_arrays(x, y, x[:40], y[:40], class_names=names)


def test_hostile_class_names_are_text(tmp_path):
    bad = [f"{number} {text}" for number, text in enumerate(HOSTILE) if text.isprintable()]  # sources refuse others
    for start in range(0, len(bad) - CLASSES + 1, CLASSES):
        source = arrays(bad[start : start + CLASSES])
        page = page_of(run_experiment(small(), out=tmp_path / f"{start}", source=source, workers=1).folder)
        read = check_page(render(page))
        assert bad[start][:30] in "".join(read.words)


def test_two_classes_are_ranked_and_a_group_without_test_samples_is_named(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(240, COLUMNS)).astype(np.float32), rng.integers(0, 2, 240)
    for wanted in ([0, 1], [1]):
        test = np.isin(y, wanted)
        source = from_arrays(x, y, x[test], y[test], class_names=["sick", "well"])
        folder = run_experiment(small(), out=tmp_path / f"{len(wanted)}", source=source, workers=1).folder
        facts = dict(section(page_of(folder), "summary").blocks[0].pairs)
        both = len(wanted) == 2
        assert ("AUPRC of well" in facts) is both
        assert ("The test set has no sample of minority classes." in words(page_of(folder), "summary")) is not both


def unfinished(folder, rounds: int):
    with begin(small(), out=folder) as execution:
        for done, _ in enumerate(execution.rounds(), 1):
            if done == rounds:
                return folder
    return folder


@pytest.mark.parametrize("rounds", [1, 3, 5])
def test_an_unfinished_run_has_a_page_with_what_there_is(tmp_path, rounds):
    page = page_of(unfinished(tmp_path / "run", rounds))
    assert [part.key for part in page.sections] == KEYS
    assert words(page, "summary").startswith(f"This run is unfinished: interrupted at round {rounds} of 6.")
    assert ("have moved" in words(page, "moves") or "moved so far" in words(page, "moves")) or rounds < 4
    check_page(render(page))


def test_a_run_that_has_not_begun_has_a_page(tmp_path):
    with begin(small(), out=tmp_path / "run"):
        pass
    assert words(page_of(tmp_path / "run"), "rounds") == "No round was scored on a test set."


def rewritten(tabular, target, change):
    """A folder with the same beginning and other rounds, as another engine would write them."""
    there = RunFolder.open(tabular)
    baseline = there.read_json("machine.json")
    made = RunFolder.create(target, there.manifest, there.read("config.toml").decode(), baseline)
    for record in there.rounds():
        made.append_round({**record, **change(RoundRecord.from_record(record))})
    return made


def test_where_clients_keep_their_moves_to_themselves_the_page_says_why(tabular, tmp_path):
    page = run_page(rewritten(tabular, tmp_path / "run", lambda _: {"moved": None, "relabelled": []}))
    assert "clients do not report which labels they change" in words(page, "moves")
    assert words(page, "moves") == words(page, "samples") == words(page, "scores")
    assert dict(section(page, "summary").blocks[1].pairs)["labels moved"] == "private"
    check_page(render(page))


def test_a_run_without_a_test_set_has_a_page(tabular, tmp_path):
    made = rewritten(tabular, tmp_path / "run", lambda _: {"accuracy": None, "loss": None, "confusion": None})
    there = RunFolder.open(tabular)
    made.write("relabelling.json", there.read("relabelling.json"))
    result = {key: value for key, value in there.read_json("result.json").items() if key != "files"}
    made.finish({**result, "accuracy": {}, "macro_f1": None, "confusion": None, "loss": None})
    page = run_page(made)
    assert words(page, "summary").endswith("There is no test set, so this page shows no accuracy.")
    assert words(page, "classes") == words(page, "confusion") == "There is no test set."
    assert "labels moved" in words(page, "moves")
    check_page(render(page))


def test_clients_lost_and_why(tabular, tmp_path):
    def lose(record):
        lost = [[1, "late"], [None, "<b>unknown</b>"]] if record.round < 3 else []
        return {"excluded": lost, "skipped": record.round == 2}

    page = run_page(rewritten(tabular, tmp_path / "run", lose))
    table = next(block for block in section(page, "lost").blocks if isinstance(block, Table))
    assert list(table.rows) == [("unknown", "2", "1, 2", "<b>unknown</b>"), ("1", "2", "1, 2", "late")]
    assert words(page, "lost") == (
        "4 updates of 2 clients did not count. Too few clients were left in 1 round (2): the model did not change."
    )
    assert "&lt;b&gt;unknown" in render(page)


def test_absolute_places_stay_home(tabular, tmp_path):
    there = RunFolder.open(tabular)
    toml = there.read("config.toml").decode().replace("[data]\n", '[data]\nroot = "/home/ann/secret/clinic"\n')
    made = RunFolder.create(tmp_path / "run", there.manifest, toml, {})
    html = render(run_page(made))
    assert "secret" not in html
    assert "root = &#34;…/clinic&#34;" in html


def test_a_changed_folder_is_refused(tabular, tmp_path):
    shutil.copytree(tabular, tmp_path / "run")
    with open(tmp_path / "run" / "gallery.npz", "ab") as file:
        file.write(b"x")
    with pytest.raises(IntegrityError, match=r"gallery\.npz"):
        page_of(tmp_path / "run")


@pytest.mark.parametrize(("format", "start"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_plots_for_papers(tabular, tmp_path, format, start):
    written = write_figures(tabular, tmp_path / "a", (format,))
    drawn = [*(figure.name for figure in page_of(tabular).figures), "samples"]
    names = [f"{name}-{size}.{format}" for name in drawn for size in ("column", "page")]
    assert [place.name for place in written] == names
    assert all(place.read_bytes().startswith(start) for place in written)
    if format == "png":
        widths = {int.from_bytes(place.read_bytes()[16:20], "big") for place in written}
        assert widths == {650, 1350}  # 3.25 and 6.75 inches at 200 dots per inch
    with pytest.raises(DataError, match="no run found"):
        write_figures(tmp_path, tmp_path / "none")
