"""`fedrela.experiment.run`, `begin` and `resume`: what goes in, what comes out, and that it is the same every time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import fedrela
from fedrela.core import Ledger
from fedrela.data.sources import from_arrays, load
from fedrela.engine.executors.pool import Pool
from fedrela.errors import ArgumentError, BusyError, DataError, IntegrityError
from fedrela.experiment import Result, begin, resume, run
from fedrela.experiment.load import config_toml, parse_config
from fedrela.runfolder import RunFolder
from fedrela.text import percent
from helpers.flower_federations import digits, federate
from helpers.small_runs import CLASSES, COLUMNS, Pulled, Reversed, Split, bytes_of, plain_module, small

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The small run in one process, as everything else is compared with it."""
    return run(small(), out=tmp_path_factory.mktemp("reference") / "run")


def test_a_run_loads_no_library_that_takes_longer_than_its_rounds(tmp_path):
    code = (
        "import sys; from fedrela.experiment import run\n"
        "config = {'data': {'partition': {'kind': 'iid', 'clients': 2}}, 'train': {'rounds': 1}}\n"
        "run(config, out=sys.argv[1], workers=1)\n"
        "slow = {'sklearn', 'scipy', 'pandas', 'sympy', 'torch._dynamo', 'matplotlib', 'flwr', 'rich'}\n"
        "assert not slow & {*sys.modules}, slow & {*sys.modules}"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "run"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


def test_the_names_of_the_package_are_functions_whatever_was_imported_before():
    assert fedrela.experiment.run is run
    code = (
        "import sys, fedrela; assert 'torch' not in sys.modules\n"
        "import fedrela.experiment.runner, fedrela.arms\n"
        "assert callable(fedrela.experiment.run) and callable(fedrela.experiment.resume)\n"
        "assert fedrela.experiment.Result.__name__ == 'Result'\n"
        "assert fedrela.engine.__name__ == 'fedrela.engine' and 'fedavg' in fedrela.algorithms.ALGORITHMS\n"
        "try: fedrela.experiment.walk\n"
        "except AttributeError as error: assert 'walk' in str(error)\n"
        "else: raise AssertionError\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_a_file_and_a_dictionary_are_the_same_run(reference, tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(config_toml(parse_config(small())))
    assert bytes_of(run(path, out=tmp_path / "a").folder) == bytes_of(reference.folder)
    assert bytes_of(run(str(path), out=str(tmp_path / "b")).folder) == bytes_of(reference.folder)


def test_ledgers_name_the_rows_of_a_table_and_those_to_keep_are_named(tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"p{i},{rng.normal(i % 3 == 0):.3f},{rng.normal():.3f},{'ab'[i % 9 == 0]}" for i in range(300)]
    (tmp_path / "wards.csv").write_text("\n".join(["who,x,z,label", *rows]))
    data = {
        "source": "csv",
        "root": str(tmp_path / "wards.csv"),
        "options": {"id": "who"},
        "imbalance": {"kind": "natural"},
    }
    config = small(data=data, train={"rounds": 4}, relabel={"start": 2})

    def moved(name, **relabel):
        done = run({**config, "relabel": config["relabel"] | relabel}, out=tmp_path / name)
        ledgers = [Ledger.load(path) for _, path in RunFolder.open(done.folder).ledgers()]
        y = {row.split(",")[0]: "ab".index(row[-1]) for row in rows}
        assert all(y[who] == label for each in ledgers for who, label in zip(each.ids, each.original, strict=True))
        assert len({who for each in ledgers for who in each.ids}) == 240, "training rows"
        return {each.ids[row] for each in ledgers for row in each.index}

    first = moved("one")
    kept = sorted(first)[:3]
    assert len(first) > 3
    assert moved("two", keep=[*kept, *(f"p{i}" for i in range(0, 300, 50))]).isdisjoint(kept)
    with pytest.raises(
        ArgumentError,
        match=r"relabel\.keep\[0\]: expected one of the ids of this data, such as 'p0', got 'p301'; nearest: 'p",
    ):
        moved("three", keep=["p7", "p301"])


def test_the_result_has_every_key_that_is_promised(reference):
    record = json.loads((reference.folder / "result.json").read_text())
    assert set(record["accuracy"]) == {"overall", "balanced", "per_class", "groups"}
    assert set(record["accuracy"]["groups"]) == {"majority", "minority"}
    assert len(record["accuracy"]["per_class"]) == CLASSES
    assert np.sum(record["confusion"]) == 20 * CLASSES
    assert np.trace(record["confusion"]) / np.sum(record["confusion"]) == pytest.approx(record["accuracy"]["overall"])
    assert 0 < record["macro_f1"] <= 1
    assert record["headline"] == "overall"
    assert record["moved"] == json.loads((reference.folder / "relabelling.json").read_text())["moved"] > 0
    assert record["rounds"] == 6
    assert len(record["weights_sha256"]) == len(record["config_sha256"]) == 64
    assert "validation" not in record
    assert "local" not in record


def test_the_history_and_the_timing_have_a_record_a_round(reference):
    history = reference.history()
    assert [record["round"] for record in history] == list(range(1, 7))
    names = {"round", "accuracy", "loss", "chosen", "admitted", "excluded", "moved"}
    assert all(names <= set(record) for record in history)
    assert [record["moved"] > 0 for record in history] == [False] * 3 + [True] + [False] * 2
    assert history[-1]["accuracy"]["overall"] == reference.accuracy["overall"]
    timing = [json.loads(line) for line in (reference.folder / "timing.jsonl").read_text().splitlines()]
    seconds = {"round", "train_seconds", "evaluate_seconds", "relabel_seconds"}
    assert [set(record) for record in timing] == [seconds] * 6


def test_the_first_round_of_re_labelling_has_the_confusion_of_the_model_before(reference):
    history = reference.history()
    assert [record["round"] for record in history if record["confusion"] is not None] == [4]
    confusion = np.array(history[3]["confusion"])
    per_class = np.diag(confusion) / confusion.sum(axis=1)
    assert per_class == pytest.approx(history[2]["accuracy"]["per_class"])  # of the round before


def test_the_findings_have_the_class_counts_of_every_client(reference):
    found = json.loads((reference.folder / "relabelling.json").read_text())
    sizes = json.loads((reference.folder / "manifest.json").read_text())["data"]["client_sizes"]
    assert [sum(number for _, number in pairs) for pairs in found["counts"]] == sizes
    total = np.zeros(CLASSES, int)
    for pairs in found["counts"]:
        for label, number in pairs:
            total[label] += number
    assert total.tolist() == found["before"]


def test_a_result_is_read_back_and_says_what_it_is(reference):
    again = Result.load(reference.folder)
    assert again.record == reference.record | {"files": again.record["files"]}
    assert (again.rounds, again.moved, again.weights_sha256) == (6, reference.moved, reference.weights_sha256)
    assert str(again).startswith(f"{percent(again.accuracy['overall'])} overall (majority ")


def test_the_weights_load_into_the_module_and_score_the_same(tmp_path):
    source = load("gaussians", **small()["data"]["options"])
    done = run(small(data={"standardize": "none"}), out=tmp_path / "run", source=source, model=plain_module())
    module = plain_module()
    module.load_state_dict({name: torch.from_numpy(array) for name, array in done.weights().items()})
    with torch.no_grad():
        predicted = module(torch.from_numpy(source.x_test)).argmax(1).numpy()
    assert (predicted == source.y_test).mean() == pytest.approx(done.accuracy["overall"])


@pytest.mark.parametrize("workers", [2, 4])
def test_any_number_of_workers_gives_the_same_bytes(reference, tmp_path, workers):
    with begin(small(), out=tmp_path / "run", workers=workers) as execution:
        assert execution.run.executor.size == workers
        assert execution.run.note == ""
        done = execution.complete()
    assert bytes_of(done.folder) == bytes_of(reference.folder)


def test_any_order_of_arrival_gives_the_same_bytes(reference, tmp_path):
    with Reversed() as executor, begin(small(), out=tmp_path / "run", executor=executor) as execution:
        done = execution.complete()
    assert bytes_of(done.folder) == bytes_of(reference.folder)


def without_checkpoints(folder):
    return {name: data for name, data in bytes_of(folder).items() if not name.startswith("checkpoint/")}


@pytest.mark.parametrize("every", [1, 4, 100])
def test_checkpoints_do_not_change_results(reference, tmp_path, every):
    done = run(small(engine={"checkpoint_every": every}), out=tmp_path / "run")
    assert without_checkpoints(done.folder) == without_checkpoints(reference.folder)


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_an_interrupted_run_goes_on_to_the_same_bytes(reference, tmp_path, stop):
    with begin(small(), out=tmp_path / "run") as execution:
        rounds = execution.rounds()
        assert [next(rounds).record.round for _ in range(stop)][-1] == stop
    with pytest.raises(DataError, match=f"interrupted at round {stop}; resume it first"):
        Result.load(tmp_path / "run")
    with resume(tmp_path / "run", workers=2) as execution:
        assert execution.run.state.round == stop - stop % 2
        done = execution.complete()
    assert bytes_of(done.folder) == bytes_of(reference.folder)


def test_a_finished_run_may_be_resumed_and_stays_as_it_is(reference):
    before = bytes_of(reference.folder)
    with resume(reference.folder) as execution:
        assert list(execution.rounds()) == []
        execution.finish()
    assert bytes_of(reference.folder) == before


@pytest.mark.parametrize("damage", ["removed", "cut"])
def test_a_finished_run_that_lost_its_last_checkpoint_is_left_as_it_is(reference, tmp_path, damage):
    folder = shutil.copytree(reference.folder, tmp_path / "run")
    last = max((folder / "checkpoint").iterdir())
    if damage == "removed":
        shutil.rmtree(last)
    else:
        (last / "arrays.safetensors").write_bytes(b"")
    before = bytes_of(folder)
    with pytest.raises(
        IntegrityError, match=r"the final model, of round 6, is lost: the newest valid .* is of round 4"
    ):
        resume(folder).__enter__()
    assert bytes_of(folder) == before
    RunFolder.open(folder).check()


def test_a_run_on_flower_that_lost_its_last_checkpoint_is_not_trained_again(tmp_path):
    config = digits(train={"rounds": 3}, engine={"checkpoint_every": 1})
    done, _ = federate(config, tmp_path)
    shutil.rmtree(max((done.folder / "checkpoint").iterdir()))
    before = bytes_of(done.folder)
    with pytest.raises(IntegrityError, match="the final model, of round 3, is lost"):
        federate(config, tmp_path)
    assert bytes_of(done.folder) == before


def test_a_folder_with_a_run_is_not_written_to(reference, tmp_path):
    before = bytes_of(reference.folder)
    with pytest.raises(ArgumentError, match="this run exists already; continue it with `fedrela resume`"):
        run(small(), out=reference.folder)
    with pytest.raises(ArgumentError, match="contains another run; choose a new or an empty folder"):
        run(small(seed=6), out=reference.folder)
    assert bytes_of(reference.folder) == before
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError, match="contains other files"):
        run(small(), out=tmp_path)


def test_one_process_at_a_time(tmp_path):
    with begin(small(), out=tmp_path / "run") as execution:
        next(execution.rounds())
        with pytest.raises(BusyError, match="is using it; wait until it has ended"), resume(tmp_path / "run"):
            pass


@pytest.mark.parametrize("make", [plain_module, Split])
def test_a_module_of_the_users_own_goes_to_the_workers_and_stays_as_it_was(tmp_path, make):
    module = make()
    before = {name: array.clone() for name, array in module.state_dict().items()}
    alone = run(small(), out=tmp_path / "alone", model=module)
    with begin(small(), out=tmp_path / "two", model=lambda shape, classes: make(), workers=2) as execution:
        assert execution.run.note == ""
        together = execution.complete()
    assert bytes_of(alone.folder) == bytes_of(together.folder)
    assert set(alone.weights()) == set(before)
    assert all(torch.equal(array, before[name]) for name, array in module.state_dict().items())


def test_a_module_that_cannot_be_sent_runs_in_this_process_and_says_so(tmp_path):
    class Local(nn.Sequential):
        pass

    def make(shape, classes):
        torch.manual_seed(3)
        return Local(nn.Linear(shape[0], 7), nn.Tanh(), nn.Linear(7, classes))

    with begin(small(), out=tmp_path / "run", model=make, workers=2) as execution:
        assert execution.run.note.startswith("runs in one process, since its work cannot be sent to another: workers: ")
        assert "Local" in execution.run.note
        assert execution.run.note.isprintable()
        assert execution.run.executor.size == 1
        done = execution.complete()
    assert done.weights_sha256 == run(small(), out=tmp_path / "same", model=plain_module()).weights_sha256


@pytest.mark.parametrize(
    ("module", "said"),
    [
        (nn.Linear(COLUMNS + 1, CLASSES), "Linear: fails on a batch of shape (2, 6): mat1 and mat2 shapes cannot be"),
        (nn.Linear(COLUMNS, 3), "Linear: expected logits of shape (batch, 4), got (2, 3) for two samples"),
    ],
)
def test_a_module_of_the_wrong_shape_gets_one_line(tmp_path, module, said):
    with pytest.raises(ArgumentError) as caught:
        run(small(), out=tmp_path / "run", model=module)
    assert said in str(caught.value)
    assert str(caught.value).isprintable()
    assert not (tmp_path / "run").exists()


def test_a_source_of_the_users_own(tmp_path):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 3, 200)
    source = from_arrays(rng.normal(0, 1, (200, 5)) + 2 * y[:, None], np.array(["cat", "dog", "eel"])[y])
    config = small(data={"imbalance": {"kind": "natural"}, "options": {}, "source": "digits"})
    with begin(config, out=tmp_path / "run", source=source) as execution:
        next(execution.rounds())
    with (
        pytest.raises(ArgumentError, match="was started with a source of your own; resume"),
        resume(tmp_path / "run"),
    ):
        pass
    other = from_arrays(np.asarray(source.x_train) + 1, source.y_train, source.x_test, source.y_test)
    with pytest.raises(IntegrityError), resume(tmp_path / "run", source=other):
        pass
    with resume(tmp_path / "run", source=source) as execution:
        done = execution.complete()
    assert done.accuracy["overall"] > 0.6
    manifest = json.loads((done.folder / "manifest.json").read_text())
    assert manifest["classes"] == ["cat", "dog", "eel"]


def test_an_algorithm_of_the_users_own(reference, tmp_path):
    with begin(small(), out=tmp_path / "run", algorithm=Pulled(strength=0.2), workers=2) as execution:
        assert execution.run.note == ""
        next(execution.rounds())
    for other in (None, Pulled(strength=0.3)):
        with pytest.raises(IntegrityError, match="algorithm differs"), resume(tmp_path / "run", algorithm=other):
            pass
    with resume(tmp_path / "run", algorithm=Pulled(strength=0.2)) as execution:
        done = execution.complete()
    norm = {name: float(np.linalg.norm(array)) for name, array in done.weights().items()}
    assert all(norm[name] < np.linalg.norm(array) for name, array in reference.weights().items())
    none = run(small(), out=tmp_path / "none", algorithm=Pulled(strength=0.0))
    assert none.weights_sha256 == reference.weights_sha256


def test_what_clients_hold_back_is_scored(tmp_path):
    done = run(small(data={"validation": 0.3}), out=tmp_path / "run")
    assert 0 < done.record["validation"]["balanced"] <= 1
    assert all(0 <= record["validation"]["overall"] <= 1 for record in done.history())


def test_two_classes_are_ranked_as_well(tmp_path):
    options = {"classes": 2, "samples": [200, 20], "test_samples": [60, 20]}
    done = run(small(data={"options": options, "imbalance": {"kind": "natural"}}), out=tmp_path / "run")
    assert done.record["headline"] == "balanced"
    assert 0.5 < done.accuracy["auroc"] <= 1
    assert 0.2 < done.accuracy["auprc"] <= 1


def test_two_classes_are_also_scored_at_the_threshold_that_validation_chooses(tmp_path):
    options = {"classes": 2, "samples": [300, 30], "test_samples": [90, 60], "separation": 1.0}
    data = {"options": options, "imbalance": {"kind": "natural"}, "validation": 0.3}
    done = run(small(data=data), out=tmp_path / "run")
    found = done.record["at_threshold"]
    assert found["threshold"] < 0, "class 1 is rare, so that it is predicted too seldom"
    assert found["balanced"] == pytest.approx(np.mean(found["per_class"]))
    assert found["balanced"] > done.accuracy["balanced"]
    assert "at_threshold" not in run(small(data={"validation": 0.3}), out=tmp_path / "four classes").record


def test_clients_score_for_themselves(tmp_path):
    local = run(small(train={"local_test": True}), out=tmp_path / "run").record["local"]
    assert len(local["clients"]) == 5
    assert local["mean"] == pytest.approx(np.mean(local["clients"]))


@pytest.mark.parametrize("table", ["train", "relabel"])
def test_only_images_can_be_augmented(tmp_path, table):
    with pytest.raises(ArgumentError, match=f"{table}.augment: crops and flips need images of bytes"):
        run(small(**{table: {"augment": True}}), out=tmp_path / "run")


def test_clients_cannot_score_for_themselves_without_test_samples(tmp_path):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    np.savez(tmp_path / "set.npz", x_train=x, y_train=y, x_test=x[:0], y_test=y[:0])
    data = {"source": "npz", "root": str(tmp_path), "options": {"file": "set.npz"}, "imbalance": {"kind": "natural"}}
    config = small(data={**data, "partition": {"kind": "iid", "clients": 3}}, train={"local_test": True})
    with pytest.raises(ArgumentError, match=r"train\.local_test: there are no test samples"):
        run(config, out=tmp_path / "run")
    config["train"] = {**config["train"], "local_test": False}
    assert run(config, out=tmp_path / "run").accuracy == {}


def test_empty_clients_do_not_count_in_their_mean(tmp_path):
    data = {"options": {"samples": [40, 40, 40], "classes": 3, "separation": 20.0}}
    data["imbalance"] = {"kind": "natural"}
    data["partition"] = {"kind": "dirichlet", "clients": 12, "alpha": 0.01, "min_size": 0}
    done = run(small(data=data, train={"local_test": True, "rounds": 10}), out=tmp_path / "run")
    local = done.record["local"]
    known = [each for each in local["clients"] if each is not None]
    assert 0 < len(known) < 12
    assert local["mean"] == pytest.approx(np.mean(known))
    assert local["weighted"] == pytest.approx(done.accuracy["overall"])  # as many samples of each class


def test_the_bound_of_moves_knows_the_tau_of_single_classes(tmp_path):
    relabel = {"tau": 0.01, "class_tau": {"0": 0.5}}
    done = run(small(relabel=relabel), out=tmp_path / "run")
    record = RunFolder.open(done.folder).read_json("relabelling.json")
    assert record["bound"] == sum(int(0.5 * sum(number for _, number in each)) for each in record["counts"])
    assert max(np.sum(record["flow"], axis=0)) <= record["bound"]


def test_a_pool_serves_several_runs(reference, tmp_path):
    with Pool(2) as executor:
        for name in "ab":
            with begin(small(), out=tmp_path / name, executor=executor) as execution:
                assert bytes_of(execution.complete().folder) == bytes_of(reference.folder)


@pytest.mark.parametrize("workers", [0, -1, 1025, "two", 1.0, True])
def test_a_wrong_number_of_workers(tmp_path, workers):
    with pytest.raises(ArgumentError, match="workers: expected 'auto' or an integer from 1 to 1024, got"):
        run(small(), out=tmp_path / "run", workers=workers)


def test_where_no_process_can_be_had_it_runs_in_this_one_and_says_so(reference, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no more processes")

    monkeypatch.setattr("fedrela.engine.executors.forkserver.start", refuse)
    with begin(small(), out=tmp_path / "run", workers=2) as execution:
        assert execution.run.note.startswith("runs in one process, since no others can be started: workers: ")
        assert bytes_of(execution.complete().folder) == bytes_of(reference.folder)
