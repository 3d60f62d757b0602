"""Battery B17: wrong tables of comparisons; `wrong_files` says how a line is read."""

from __future__ import annotations

CASES = {
    "compare": """
«seed = 3                             | seed: unknown key; nearest: seeds
«baseline = "fedavg"                      | baseline: unknown key; nearest: baselines
«arm = ["baseline"]                       | arm: unknown key; nearest: arms
«q = 1                                | q: unknown key; this table has seeds, baselines, arms, pairs, score
seeds = «0                            | seeds: expected a number of seeds from 1 to 1000, or a list of that many, got 0
seeds = «1001                         | seeds: expected a number of seeds from 1 to 1000, or a list of that many
seeds = «-3                           | seeds: expected a number of seeds from 1 to 1000
seeds = «3.0                          | seeds: expected a number of seeds from 1 to 1000, or a list of that many
seeds = «true                         | seeds: expected a number of seeds from 1 to 1000, or a list of that many
seeds = «"3"                          | seeds: expected a number of seeds from 1 to 1000, or a list of that many
seeds = «[]                           | seeds: expected a number of seeds from 1 to 1000, or a list of that many
seeds = [1, «1.0]                     | seeds[1]: expected an integer >= 0, got 1.0
seeds = [«-1]                         | seeds[0]: expected an integer >= 0, got -1
seeds = [1, «true]                    | seeds[1]: expected an integer >= 0, got true
seeds = [4, 7, «4]                    | seeds[2]: 4 is listed twice; leave one of the two out
seeds = [1, «"2", 1]                  | seeds[1]: expected an integer >= 0, got '2' (and 1 more)
baselines = «"fedavg"                     | baselines: expected a list of 1 to 200 algorithms, got 'fedavg'
baselines = «[]                           | baselines: expected a list of 1 to 200 algorithms, got a list of 0
baselines = «{ name = "fedavg" }          | baselines: expected a list of 1 to 200 algorithms, got a table
baselines = «3                            | baselines: expected a list of 1 to 200 algorithms, got 3
baselines = ["fedavg", «3]                | baselines[1]: expected the name of an algorithm, or a table with one, got 3
baselines = [«["fedavg"]]                 | baselines[0]: expected the name of an algorithm, or a table with one, got a
baselines = [«"fedavgg"]                  | baselines[0]: expected one of climb, creff, fedavg, feddyn, fedetf
baselines = [«"FedAvg"]                   | baselines[0]: expected one of climb, creff
baselines = [«{ mu = 0.1 }]               | baselines[0]: name: the name of an algorithm is missing
baselines = [«{}]                         | baselines[0]: name: the name of an algorithm is missing
baselines = [{ name = «"fedprx" }]        | baselines[0].name: expected one of climb, creff
baselines = [{ name = «2 }]               | baselines[0].name: expected one of climb, creff
baselines = [{ name = "fedprox", mu = «-1 }]         | baselines[0].mu: expected a number >= 0, got -1
baselines = [{ name = "fedprox", mu = «"x" }]        | baselines[0].mu: expected a number >= 0, got 'x'
baselines = [{ name = "fedprox", «nu = 1 }]          | baselines[0].nu: unknown key; nearest: mu
baselines = [{ name = "fedprox", «lable = "P" }]     | baselines[0].lable: unknown key; nearest: label
baselines = [{ name = "fedavg", «mu = 1 }]           | baselines[0].mu: unknown key; algorithm 'fedavg' has name
baselines = [{ name = "fedprox", «zq = 1, mu = -1 }] | baselines[0].zq: unknown key; algorithm 'fedprox' has name
baselines = ["fedavg", «"fedavg"]                    | baselines[1]: another baseline is called 'FedAvg'; give one of
baselines = [{ name = "moon", label = "A" }, { name = "fedprox", label = «"A" }] | baselines[1].label: another baseline
baselines = [{ name = "moon", label = "FedAvg" }, «"fedavg"] | baselines[1]: another baseline is called 'FedAvg'
baselines = [{ name = "fedavg", label = «"" }]       | baselines[0].label: expected text of 1 to 60 printable characters
baselines = [{ name = "fedavg", label = «"  " }]     | baselines[0].label: expected text of 1 to 60 printable characters
baselines = [{ name = "fedavg", label = «"a\\u001b[2J" }] | baselines[0].label: expected text of 1 to 60 printable
baselines = [{ name = "fedavg", label = «7 }]        | baselines[0].label: expected text of 1 to 60 printable characters
baselines = [{ name = "fedavg", train = «0.1 }]      | baselines[0].train: expected a table, got
baselines = [{ name = "fedavg", model = «"mlp" }]    | baselines[0].model: expected a table, got
baselines = [{ name = "fedavg", train = { lr = «0 } }]        | baselines[0].train.lr: expected a number > 0, got 0
baselines = [{ name = "fedavg", train = { «rate = 0.1 } }]    | baselines[0].train.rate: unknown key
baselines = [{ name = "fedavg", model = { name = «"mpl" } }]  | baselines[0].model.name: expected one of cnn, cnn_small,
baselines = [{ name = "fedavg", model = { «hiden = [8] } }]   | baselines[0].model.hiden: unknown key; nearest: hidden
baselines = ["fedavg", { name = "fedlc", train = { lr = 0.1 } }, «4]; score = "x" | baselines[2]: expected the name of
arms = «"baseline"                        | arms: expected a list of arms out of baseline, baseline-drop, fedrela
arms = «[]                            | arms: expected a list of arms out of baseline, baseline-drop, fedrela
arms = «4                             | arms: expected a list of arms out of baseline, baseline-drop
arms = ["baseline", «"hots"]              | arms[1]: expected one of baseline, baseline-drop, fedrela, fedrela-drop
arms = [«"FedReLa"]                   | arms[0]: expected one of baseline, baseline-drop
arms = ["baseline", «1]                   | arms[1]: expected one of baseline, baseline-drop
arms = ["baseline", "random", «"baseline"]    | arms[2]: 'baseline' is listed twice; leave one of the two out
pairs = «"baseline"                       | pairs: expected a list of pairs of arms [base, treated], got 'baseline'
pairs = [["baseline", "fedrela"], «["baseline"]]  | pairs[1]: expected a pair of different arms [base, treated]
pairs = [«["baseline", "baseline"]]       | pairs[0]: expected a pair of different arms [base, treated] out of baseline
pairs = [«["baseline", "hots"]]           | pairs[0]: expected a pair of different arms [base, treated] out of baseline
pairs = [«["baseline", "random"]]         | pairs[0]: expected two of the arms that are run, baseline, baseline-drop
score = «"best"                       | score: expected one of last, best-validation, best-test, got 'best'
score = «true                         | score: expected one of last, best-validation, best-test, got true
score = «"best-validation"            | score: expected data.validation above 0: the samples
seeds = [«-1]; score = "x"            | seeds[0]: expected an integer >= 0, got -1 (and 1 more)
""",
}
WHOLE = {
    "a baseline with a loss of its own": (
        "[train]\nloss = 'focal'\n[compare]\nbaselines = ['fedavg', «'fedlc']\n",
        "compare.baselines[1]: train.loss: algorithm 'fedlc' has its own loss; leave this out",
    ),
    "a baseline that ends before re-labelling": (
        "[relabel]\nstart = 30\n[compare]\nbaselines = [«{ name = 'moon', train.rounds = 20 }]\n",
        "compare.baselines[0]: relabel.start: expected a round up to the last one, 20, got 30",
    ),
    "baselines as tables": (
        "[[compare.baselines]]\nname = 'fedavg'\n[[compare.baselines]]\nname = 'fedprox'\n"
        "[compare.baselines.train]\nepochs = «0\n",
        "compare.baselines[1].train.epochs: expected an integer from 1 to 100000, got 0",
    ),
}
