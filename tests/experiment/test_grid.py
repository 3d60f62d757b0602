"""Grids: a run from a prefix equals the same run alone, whatever it was cut off by, and nothing is done twice."""

from __future__ import annotations

import pytest
import torch

from fedrela.engine.executors.pool import Pool
from fedrela.engine.executors.serial import SerialExecutor
from fedrela.errors import ArgumentError, BusyError
from fedrela.experiment import begin
from fedrela.experiment import grid as grids
from fedrela.experiment.grid import Cell, Grid, address, prefix_config
from fedrela.experiment.load import parse_config
from fedrela.experiment.overlay import overlay
from fedrela.runfolder.grids import GridFolder
from helpers.small_runs import bytes_of, small

torch.set_num_threads(1)
CHANGES = {
    "baseline": {"enabled": False},
    "drop": {"enabled": False, "lr_scale": 0.1},
    "fedrela": {},
    "random": {"moves": "random"},
    "tau": {"tau": 0.4},
}


@pytest.fixture
def executor():
    with SerialExecutor() as pool:
        yield pool


def cells_of(*, starts=(4,), chosen=tuple(CHANGES), **tables):
    config = parse_config(small(**{"relabel": {"tau": 0.2}, "engine": {"checkpoint_every": 1}} | tables))
    return [
        Cell(overlay(config, {"relabel": {"start": start, **CHANGES[name]}}), "FedAvg", name, 5, {"start": start})
        for start in starts
        for name in chosen
    ]


def grid_of(out, cells, base="b"):
    return Grid(out, cells, kind="compare", name="small", base=base, config="seed = 5\n")


def rounds_of(grid, executor):
    return [(each.task.cell.arm if each.task.cell else "prefix", each.done.record.round) for each in grid.run(executor)]


def alone(cell, out, executor):
    with begin(cell.config, out=out, executor=executor) as execution:
        execution.complete()
    return bytes_of(out)


VARIANTS = {
    "fedavg": {},
    "fedprox": {"algorithm": {"name": "fedprox", "mu": 0.1}},
    "collected": {"relabel": {"tau": 0.2, "collected": True}},
    "sampled": {"algorithm": {"name": "scaffold"}, "train": {"rounds": 6, "epochs": 1, "participation": 0.5}},
    "seldom scored": {"train": {"rounds": 6, "epochs": 1, "evaluate_every": 4}},
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_run_from_a_prefix_equals_the_same_run_alone(tmp_path, executor, variant):
    cells = cells_of(starts=(4, 5), chosen=("baseline", "fedrela", "random"), **VARIANTS[variant])
    grid = grid_of(tmp_path / "grid", cells)
    done = rounds_of(grid, executor)
    assert done == [
        *(("prefix", r) for r in (1, 2, 3)),
        *((arm, r) for arm in ("baseline", "fedrela", "random") for r in (4, 5, 6)),
        ("prefix", 4),
        *((arm, r) for arm in ("baseline", "fedrela", "random") for r in (5, 6)),
    ]
    for number, cell in enumerate(cells):
        assert bytes_of(grid.place(cell)) == alone(cell, tmp_path / str(number), executor)
    assert grid.finished() == len(cells)
    assert not grid.failures


def test_random_moves_are_as_many_of_other_samples(tmp_path, executor):
    grid = grid_of(tmp_path, cells_of(chosen=("fedrela", "random")))
    rounds_of(grid, executor)
    ours, chance = map(grid.result, grid.cells)
    assert ours.moved == chance.moved > 0
    assert (ours.folder / "relabelling.json").read_bytes() == (chance.folder / "relabelling.json").read_bytes()
    ledgers = [[path.read_bytes() for path in sorted(each.folder.glob("ledgers/*"))] for each in (ours, chance)]
    assert len(ledgers[0]) == len(ledgers[1]) == 5
    assert ledgers[0] != ledgers[1]


def test_positions_count_every_round_once(tmp_path, executor):
    grid = grid_of(tmp_path, cells_of(starts=(1, 4), chosen=("baseline", "fedrela")))
    begun = grid.run(executor)
    positions = [grid.position(next(begun)) for _ in range(8)]
    begun.close()
    positions += [grid.position(each) for each in grid.run(executor)]
    assert positions == list(range(1, grid.rounds + 1)) == list(range(1, 22))


def test_tasks_done_side_by_side_give_the_same_bytes(tmp_path, executor):
    tables = {"algorithm": {"name": "scaffold"}}
    cells = cells_of(starts=(4, 5), chosen=("baseline", "fedrela", "random"), **tables)
    serial, pooled = (grid_of(tmp_path / name, cells) for name in ("serial", "pooled"))
    rounds_of(serial, executor)
    with Pool(2) as pool:
        seen = list(pooled.run(pool))
        assert list(pooled.run(pool)) == []
    assert [(each.task.first, each.task.last) for each in seen if each.rounds > 1], "some were done as a whole"
    assert {each.task.out.name for each in seen if each.done.record.round == each.task.last} == {
        task.out.name for task in pooled.tasks
    }
    positions = [pooled.position(each) for each in seen]
    assert positions == sorted(positions)
    assert positions[-1] == pooled.rounds
    for cell in cells:
        assert bytes_of(serial.place(cell)) == bytes_of(pooled.place(cell))


def test_no_worker_waits_for_the_shared_rounds_of_others(tmp_path, monkeypatch):
    cells = [cell for seed in (1, 2, 3) for cell in cells_of(chosen=("baseline", "fedrela"), seed=seed)]
    grid, loaded, load = grid_of(tmp_path, cells), [], Pool.load
    monkeypatch.setattr(Pool, "load", lambda pool, work: (loaded.append(work), load(pool, work))[1])
    with Pool(2) as pool:
        seen = [(each.task.cell is None, each.rounds > 1) for each in grid.run(pool)]
    assert loaded.count(grids._run_alone) == 1, "what continues joins the tasks, without a second wave"
    assert seen.count((True, True)) == 3
    assert seen.count((False, True)) == 5, "of nine tasks the last one shares the workers"
    assert grid.finished() == 6


def test_a_failure_side_by_side_is_noted_and_others_go_on(tmp_path):
    bad = {"train": {"rounds": 6, "epochs": 1, "lr": 1e30, "give_up": 1}}
    cells = [*cells_of(chosen=("baseline", "fedrela"), **bad), *cells_of(chosen=("baseline", "fedrela"))]
    grid = grid_of(tmp_path, cells)
    with Pool(2) as pool:
        list(grid.run(pool))
    assert len(grid.failures) == 3  # the shared rounds, and both runs that continue from them
    assert sum("the rounds before re-labelling failed" in str(why) for why in grid.failures.values()) == 2
    assert {error.exit_code for error in grid.failures.values()} == {grid.failure("no run").exit_code} == {5}
    assert grid.finished() == 2


def test_an_error_that_is_no_failed_run_is_raised(tmp_path, executor):
    cells = [*cells_of(chosen=("fedrela",)), *cells_of(chosen=("fedrela",), train={"rounds": 7, "epochs": 1})]
    grid = grid_of(tmp_path, cells)
    grid.begin()
    busy = begin(cells[0].config, out=grid.place(cells[0]), executor=executor)
    with Pool(2) as pool, busy, pytest.raises(BusyError, match="process"):
        list(grid.run(pool))
    assert not grid.failures
    assert grid.is_done(cells[1])


def test_tasks_side_by_side_go_on_after_an_interruption(tmp_path, executor):
    cells = cells_of(chosen=("baseline", "fedrela", "random", "tau"))
    whole, cut = (grid_of(tmp_path / name, cells) for name in ("whole", "cut"))
    rounds_of(whole, executor)
    with Pool(2) as pool:
        begun = cut.run(pool)
        while next(begun).task.cell is None:
            pass
        begun.close()  # as Ctrl-C does: workers end in the middle of their tasks
        assert 1 <= cut.finished() < 4
        list(cut.run(pool))
    for cell in cells:
        assert bytes_of(whole.place(cell)) == bytes_of(cut.place(cell))


def test_what_a_worker_cannot_do_is_done_here(tmp_path, executor, monkeypatch):
    monkeypatch.setattr("fedrela.experiment.grid._run_alone", lambda _: None)  # cannot be pickled
    grid = grid_of(tmp_path, cells_of(starts=(1,), chosen=("fedrela", "random")))
    with Pool(2) as pool:
        seen = list(grid.run(pool))
    assert {each.rounds for each in seen} == {1}
    assert grid.finished() == 2


@pytest.mark.parametrize("stop", [0, 1, 3, 4, 7, 10, 11])
def test_what_was_cut_off_goes_on(tmp_path, executor, stop):
    cells = cells_of(starts=(4, 6), chosen=("baseline", "fedrela"))
    whole = grid_of(tmp_path / "whole", cells)
    expected = rounds_of(whole, executor)
    cut = grid_of(tmp_path / "cut", cells)
    begun = cut.run(executor)
    before = [next(begun) for _ in range(stop)]
    begun.close()
    rest = rounds_of(cut, executor)
    assert [(e.task.cell.arm if e.task.cell else "prefix", e.done.record.round) for e in before] + rest == expected
    assert all(bytes_of(cut.place(cell)) == bytes_of(whole.place(cell)) for cell in cells)
    assert rounds_of(cut, executor) == []


def test_more_cells_go_on_with_what_is_there(tmp_path, executor):
    rounds_of(grid_of(tmp_path, cells_of(chosen=("baseline", "fedrela"))), executor)
    more = grid_of(tmp_path, cells_of(starts=(4, 3)))
    assert more.finished() == 2
    done = rounds_of(more, executor)
    assert ("prefix", 3) not in done  # the longer prefix is there
    assert [pair for pair in done if pair[0] == "prefix"] == [("prefix", 1), ("prefix", 2)]
    assert {arm for arm, _ in done if arm != "prefix"} == set(CHANGES)
    assert more.finished() == len(more.cells)


def test_one_run_alone_has_no_prefix(tmp_path, executor):
    assert rounds_of(grid_of(tmp_path, cells_of(chosen=("fedrela",))), executor) == [
        ("fedrela", r) for r in range(1, 7)
    ]
    assert not (tmp_path / "prefixes").exists()


def test_one_run_more_goes_on_from_a_prefix_that_is_there(tmp_path, executor):
    rounds_of(grid_of(tmp_path, cells_of(chosen=("baseline", "fedrela"))), executor)
    assert rounds_of(grid_of(tmp_path, cells_of(chosen=("random",))), executor) == [("random", r) for r in (4, 5, 6)]


def test_cells_of_one_configuration_are_one_run(tmp_path, executor):
    twice = cells_of(chosen=("fedrela",)) * 2
    assert len(rounds_of(grid_of(tmp_path, twice), executor)) == 6
    assert len(GridFolder.open(tmp_path).cells) == 2


def test_what_differs_only_after_the_prefix_shares_it():
    family = {address(prefix_config(cell.config)) for cell in cells_of(starts=(1, 4, 6))}
    assert len(family) == 1
    other = cells_of(relabel={"collected": True}) + cells_of(train={"lr": 0.3})
    assert not family & {address(prefix_config(cell.config)) for cell in other}


def test_a_run_that_diverges_is_noted_and_the_others_go_on(tmp_path, executor):
    good = cells_of(chosen=("fedrela",))
    bad = cells_of(chosen=("baseline", "fedrela"), train={"rounds": 6, "lr": 1e30, "give_up": 2})
    grid = grid_of(tmp_path, bad + good)
    rounds_of(grid, executor)
    assert grid.is_done(good[0])
    assert grid.finished() == 1
    assert len(grid.failures) == 3  # the prefix, and the two that grow from it
    assert all("round 2: fewer than 1 clients" in str(said) for said in grid.failures.values())


def test_somebody_else_at_work_is_noticed(tmp_path, executor):
    first = grid_of(tmp_path, cells_of()).run(executor)
    next(first)
    with SerialExecutor() as another, pytest.raises(BusyError, match="process"):
        rounds_of(grid_of(tmp_path, cells_of()), another)
    first.close()


def test_another_grid_in_the_folder_is_left_alone(tmp_path):
    grid_of(tmp_path / "a", cells_of()).begin()
    with pytest.raises(ArgumentError, match="contains a compare of another configuration; choose another folder or"):
        grid_of(tmp_path / "a", cells_of(), base="c").begin()


def test_where_no_process_can_be_had_it_runs_in_this_one_and_says_so(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("no more processes")

    monkeypatch.setattr("fedrela.engine.executors.forkserver.start", refuse)
    grid = grid_of(tmp_path / "grid", cells_of(chosen=["baseline"]))
    with pytest.warns(UserWarning, match=r"grid: runs in one process, since no others can be started: workers: "):
        grid.complete(workers=2)
    assert grid.finished() == 1
