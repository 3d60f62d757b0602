"""Battery B17: wrong tables of sweeps, in full, with a ``«`` where the message must point, and its words."""

from __future__ import annotations

TAU = "expected a fraction from 0 to 1, got 5; the official code counts in per cent: 5 there is 0.05 here"
SEEDS = "seeds belong in [compare] seeds, and their results are averaged"

WHOLE = {
    "swept: a value": ("[sweep]\n'relabel.tau' = [0.01, «5, 0.1]", f'sweep."relabel.tau"[1]: {TAU}'),
    "swept: a value below a header": (
        "[sweep.relabel]\nstart = [1, 2]\ntau = [\n «5 ]",
        f"sweep.relabel.tau[0]: {TAU}",
    ),
    "swept: a value in an inline table": (
        "sweep = { relabel = { tau = [«5] } }",
        f"sweep.relabel.tau[0]: {TAU}",
    ),
    "swept: a value behind dots": ("sweep.relabel.tau = [0.1, «5]", f"sweep.relabel.tau[1]: {TAU}"),
    "swept: a value half in quotes": (
        "[sweep.data]\n'partition.alpha' = [«0]\n[data]\npartition = { clients = 3, alpha = 1 }",
        'sweep.data."partition.alpha"[0]: expected a number from 0.01',
    ),
    "swept: two values": (
        "[sweep]\n'relabel.tau' = [0.01, «5]\n'train.lr' = [-1, 1]",
        f'sweep."relabel.tau"[1]: {TAU} (and 1 more)',
    ),
    "swept: a word": (
        "[sweep]\n'relabel.preset' = ['paper', «'offical']",
        'sweep."relabel.preset"[1]: expected one of paper',
    ),
    "swept: a list among values": (
        "[sweep]\n'model.hidden' = [[8], [8, «0]]",
        'sweep."model.hidden"[1][1]: expected an integer from 1 to 1000000, got 0',
    ),
    "swept: a value that is no list": (
        "[sweep]\n'model.hidden' = [[8], «8]",
        'sweep."model.hidden"[1]: expected a list of integers, one per layer, got 8',
    ),
    "swept: not a number": (
        "[sweep]\n'relabel.tau' = [«nan]",
        'sweep."relabel.tau"[0]: expected a fraction from 0 to 1',
    ),
    "swept: another score": (
        "[sweep]\n'relabel.tau' = [0.1, 0.2]\n[compare]\n«score = 'best-test'",
        "compare.score: a sweep is scored after the last round; leave it out",
    ),
    "swept: pairs": (
        "[sweep]\n'relabel.tau' = [0.1, 0.2]\n[compare]\n«pairs = [['baseline', 'fedrela']]",
        "compare.pairs: a sweep shows the arms, not their differences; leave it out",
    ),
    "swept: a date": ("[sweep]\n'train.lr' = [0.1, «1979-05-27]", 'sweep."train.lr"[1]: expected a number'),
    "swept: an unknown key": (
        "[sweep]\n«'relabel.tua' = [0.1]",
        'sweep."relabel.tua": unknown key; nearest: tau',
    ),
    "swept: an unknown key below a header": (
        "[sweep.relabel]\nstart = [1, 2]\n«tua = [0.1, 0.2]",
        "sweep.relabel.tua: unknown key; nearest: tau",
    ),
    "swept: an unknown table": (
        "[sweep]\n«'relabl.tau' = [0.1]",
        'sweep."relabl.tau": relabl: unknown key; nearest: relabel',
    ),
    "swept: an unknown table below a header": (
        "[sweep.«relabl]\ntau = [0.1]",
        "sweep.relabl: unknown key; nearest: relabel",
    ),
    "swept: an unknown table inside": (
        "[sweep.data.«imbalanc]\nratio = [2]",
        "sweep.data.imbalanc: unknown key; nearest: imbalance",
    ),
    "swept: a key below a number": (
        "[sweep]\n«'train.rounds.x' = [3]",
        'sweep."train.rounds.x": train.rounds: expected an integer from 1 to 1000000, got a table',
    ),
    "swept: an empty name": ("[sweep]\n«'' = [3]", 'sweep."": unknown key; this table has seed, data'),
    "swept: an empty part": ("[sweep]\n«'relabel..tau' = [3]", 'sweep."relabel..tau": relabel.""'),
    "swept: a parameter of another algorithm": (
        "[sweep]\n'algorithm.name' = ['fedprox', 'fedavg']\n«'algorithm.mu' = [0.1, 1]",
        "sweep.\"algorithm.mu\": unknown key; algorithm 'fedavg' has",
    ),
    "swept: a value that another table does not allow": (
        "«[sweep]\n'relabel.tau' = [0.1, 0.2]\n'train.rounds' = [60, 40]\n[relabel]\nstart = 48",
        "sweep: with relabel.tau = 0.1, train.rounds = 40: relabel.start: expected a round up to the last one, 40",
    ),
    "swept: two values that do not go together": (
        "[sweep]\n'relabel.start' = [5, «48]\n'train.rounds' = [60, 40]",
        'sweep."relabel.start"[1]: expected a round up to the last one, 40',
    ),
    "swept: a name that another table does not allow": (
        "train.loss = 'focal'\n[sweep]\nalgorithm.name = ['fedavg', «'fedlc']",
        "sweep.algorithm.name[1]: train.loss: algorithm 'fedlc' has its own loss; leave this out",
    ),
    "swept: a kind that needs more": (
        "[sweep.data]\nimbalance.kind = ['natural', «'step']",
        "sweep.data.imbalance.kind[1]: data.imbalance.ratio: a number >= 1 is missing",
    ),
    "swept: a table that needs more": (
        "[sweep]\n'data.partition' = [{ kind = 'iid', clients = 3 }, «{ kind = 'iid' }]",
        'sweep."data.partition"[1].clients: an integer from 1 to 1000000 is missing',
    ),
    "swept: a key in a table": (
        "[sweep]\n'data.partition' = [{ kind = 'iid', clients = 3, «alpah = 1 }]",
        'sweep."data.partition"[0].alpah: unknown key; nearest: alpha',
    ),
    "swept: an array of tables": (
        "[[sweep.data.imbalance]]\nkind = 'natural'\n[[sweep.data.imbalance]]\nkind = 'long_tail'\nfactor = «0",
        "sweep.data.imbalance[1].factor: expected a number >= 1, got 0",
    ),
    "swept: no list": (
        "[sweep]\n'relabel.tau' = «0.1",
        'sweep."relabel.tau": expected a list of values to try, got 0.1',
    ),
    "swept: text": ("sweep.title = «'mine'", "sweep.title: expected a list of values to try, got 'mine'"),
    "swept: no value": (
        "[sweep.relabel]\ntau = «[]",
        "sweep.relabel.tau: expected a list of values to try, got an empty",
    ),
    "swept: an empty table": (
        "[sweep]\nrelabel = «{}",
        "sweep.relabel: expected a list of values to try, got a table",
    ),
    "swept: a value twice": (
        "[sweep]\n'train.epochs' = [1, 2, «1]",
        'sweep."train.epochs"[2]: 1 is listed twice; leave one of the two out',
    ),
    "swept: a key twice": (
        "[sweep]\n'relabel.tau' = [0.1]\nrelabel.«tau = [0.2]",
        "sweep.relabel.tau: relabel.tau is swept already; leave one of the two out",
    ),
    "swept: a table and a key in it": (
        "[sweep]\n'data.partition.alpha' = [1.0]\n«'data.partition' = [{ kind = 'iid', clients = 3 }]",
        'sweep."data.partition": data.partition.alpha is swept already',
    ),
    "swept: seeds": ("[sweep]\n«seed = [1, 2]", f"sweep.seed: {SEEDS}"),
    "swept: the engine": (
        "sweep.engine.«workers = [1, 2]",
        "sweep.engine.workers: nothing in [engine] changes a result",
    ),
    "swept: the report": ("[sweep]\n«'report.samples' = [true]", 'sweep."report.samples": nothing in [report] changes'),
    "swept: a comparison": (
        "[sweep]\n«'compare.seeds' = [[1], [2]]",
        'sweep."compare.seeds": [compare] is about all',
    ),
    "swept: a sweep": ("[sweep.sweep]\n«x = [1]", "sweep.sweep.x: [sweep] is about all runs, not one"),
    "swept: too many": (
        f"«[sweep]\n'train.epochs' = {list(range(1, 72))}\n'train.batch_size' = {list(range(1, 72))}\n",
        "sweep: expected at most 5000 combinations, got 5041",
    ),
    "swept: too many keys": (
        "«[sweep]\n" + "".join(f"k{i} = [1]\n" for i in range(51)),
        "sweep: expected at most 50 keys, got 51",
    ),
    "swept: too many with others": (
        f"«[sweep]\n'train.epochs' = {list(range(1, 60))}\n[compare]\nseeds = 100",
        "sweep: expected at most 5000 runs, got 5900 with the seeds, baselines and arms of [compare]",
    ),
    "swept: what arms set": (
        "[sweep]\n«'relabel.lr_scale' = [0.1, 1.0]\n[compare]\narms = ['baseline', 'fedrela']",
        'sweep."relabel.lr_scale": [compare] arms set it; leave one of the two out',
    ),
    "swept: what baselines set": (
        "compare.baselines = ['fedavg', 'moon']\nsweep.algorithm.«name = ['fedavg', 'moon']",
        "sweep.algorithm.name: [compare] baselines set it; leave one of the two out",
    ),
    "swept: a table that baselines set": (
        "compare.baselines = ['fedavg', 'moon']\nsweep.«algorithm = [{ name = 'fedavg' }]",
        "sweep.algorithm: [compare] baselines set it; leave one of the two out",
    ),
    "swept: a parameter that one of the baselines lacks": (
        "compare.baselines = ['fedprox', 'fedavg']\nsweep.algorithm.«mu = [0.1, 1]",
        "sweep.algorithm.mu: unknown key; algorithm 'fedavg' has",
    ),
    "swept: a value that one of the baselines does not allow": (
        "compare.baselines = ['fedavg', { name = 'moon', train.rounds = 9 }]\n[sweep.relabel]\nstart = [9, «10]",
        "sweep.relabel.start[1]: expected a round up to the last one, 9, got 10",
    ),
}
