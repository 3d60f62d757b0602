"""Battery B17: wrong tables of comparisons; `wrong_files` says how a line is read."""

from __future__ import annotations

CASES = {
    "compare": """
«seed = 3                             | seed: unknown key; nearest: seeds
«host = "fedavg"                      | host: unknown key; nearest: hosts
«arm = ["host"]                       | arm: unknown key; nearest: arms
«q = 1                                | q: unknown key; this table has seeds, hosts, arms, score
seeds = «0                            | seeds: a number of seeds from 1 to 1000, or a list of so many, is needed, got 0
seeds = «1001                         | seeds: a number of seeds from 1 to 1000, or a list of so many, is needed
seeds = «-3                           | seeds: a number of seeds from 1 to 1000
seeds = «3.0                          | seeds: a number of seeds from 1 to 1000, or a list of so many, is
seeds = «true                         | seeds: a number of seeds from 1 to 1000, or a list of so many, is
seeds = «"3"                          | seeds: a number of seeds from 1 to 1000, or a list of so many, is
seeds = «[]                           | seeds: a number of seeds from 1 to 1000, or a list of so many, is
seeds = [1, «1.0]                     | seeds[1]: a whole number from 0 is needed, got 1.0
seeds = [«-1]                         | seeds[0]: a whole number from 0 is needed, got -1
seeds = [1, «true]                    | seeds[1]: a whole number from 0 is needed, got true
seeds = [4, 7, «4]                    | seeds[2]: 4 is there already; leave one of the two out
seeds = [1, «"2", 1]                  | seeds[1]: a whole number from 0 is needed, got '2' (and 1 more)
hosts = «"fedavg"                     | hosts: a list of 1 to 200 algorithms is needed, got 'fedavg'
hosts = «[]                           | hosts: a list of 1 to 200 algorithms is needed, got a list of 0
hosts = «{ name = "fedavg" }          | hosts: a list of 1 to 200 algorithms is needed, got a table
hosts = «3                            | hosts: a list of 1 to 200 algorithms is needed, got 3
hosts = ["fedavg", «3]                | hosts[1]: the name of an algorithm, or a table with one, is needed, got 3
hosts = [«["fedavg"]]                 | hosts[0]: the name of an algorithm, or a table with one, is needed, got a list
hosts = [«"fedavgg"]                  | hosts[0]: one of climb, creff, fedavg, feddyn, fedetf, fedetf_original,
hosts = [«"FedAvg"]                   | hosts[0]: one of climb, creff
hosts = [«{ mu = 0.1 }]               | hosts[0]: name: the name of an algorithm is missing
hosts = [«{}]                         | hosts[0]: name: the name of an algorithm is missing
hosts = [{ name = «"fedprx" }]        | hosts[0].name: one of climb, creff
hosts = [{ name = «2 }]               | hosts[0].name: one of climb, creff
hosts = [{ name = "fedprox", mu = «-1 }]         | hosts[0].mu: a number of at least 0 is needed, got -1
hosts = [{ name = "fedprox", mu = «"x" }]        | hosts[0].mu: a number of at least 0 is needed, got 'x'
hosts = [{ name = "fedprox", «nu = 1 }]          | hosts[0].nu: unknown key; nearest: mu
hosts = [{ name = "fedprox", «lable = "P" }]     | hosts[0].lable: unknown key; nearest: label
hosts = [{ name = "fedavg", «mu = 1 }]           | hosts[0].mu: unknown key; a host with algorithm 'fedavg' has name,
hosts = [{ name = "fedprox", «zq = 1, mu = -1 }] | hosts[0].zq: unknown key; a host with algorithm 'fedprox' has name
hosts = ["fedavg", «"fedavg"]                    | hosts[1]: another host is called 'FedAvg'; give one of them another
hosts = [{ name = "moon", label = "A" }, { name = "fedprox", label = «"A" }] | hosts[1].label: another host is called
hosts = [{ name = "moon", label = "FedAvg" }, «"fedavg"] | hosts[1]: another host is called 'FedAvg'
hosts = [{ name = "fedavg", label = «"" }]       | hosts[0].label: text of 1 to 60 characters that print is needed
hosts = [{ name = "fedavg", label = «"  " }]     | hosts[0].label: text of 1 to 60 characters that print is needed
hosts = [{ name = "fedavg", label = «"a\\u001b[2J" }] | hosts[0].label: text of 1 to 60 characters that print is needed
hosts = [{ name = "fedavg", label = «7 }]        | hosts[0].label: text of 1 to 60 characters that print is needed
hosts = [{ name = "fedavg", train = «0.1 }]      | hosts[0].train: a table with keys of [train] is needed, got 0.1
hosts = [{ name = "fedavg", model = «"mlp" }]    | hosts[0].model: a table with keys of [model] is needed, got 'mlp'
hosts = [{ name = "fedavg", train = { lr = «0 } }]        | hosts[0].train.lr: a number above 0 is needed, got 0
hosts = [{ name = "fedavg", train = { «rate = 0.1 } }]    | hosts[0].train.rate: unknown key
hosts = [{ name = "fedavg", model = { name = «"mpl" } }]  | hosts[0].model.name: one of cnn, cnn_small,
hosts = [{ name = "fedavg", model = { «hiden = [8] } }]   | hosts[0].model.hiden: unknown key; nearest: hidden
hosts = ["fedavg", { name = "fedlc", train = { lr = 0.1 } }, «4]; score = "x" | hosts[2]: the name of an algorithm, or
arms = «"host"                        | arms: a list of arms out of host, host-drop, fedrela, fedrela-drop, random,
arms = «[]                            | arms: a list of arms out of host, host-drop, fedrela, fedrela-drop, random,
arms = «4                             | arms: a list of arms out of host, host-drop
arms = ["host", «"hots"]              | arms[1]: one of host, host-drop, fedrela, fedrela-drop, random, random-drop is
arms = [«"FedReLa"]                   | arms[0]: one of host, host-drop
arms = ["host", «1]                   | arms[1]: one of host, host-drop
arms = ["host", "random", «"host"]    | arms[2]: 'host' is there already; leave one of the two out
score = «"best"                       | score: one of last, best-validation, best-test is needed, got 'best'
score = «true                         | score: one of last, best-validation, best-test is needed, got true
score = «"best-validation"            | score: data.validation above 0 is needed for it
seeds = [«-1]; score = "x"            | seeds[0]: a whole number from 0 is needed, got -1 (and 1 more)
""",
}
WHOLE = {
    "a host with a loss of its own": (
        "[train]\nloss = 'focal'\n[compare]\nhosts = ['fedavg', «'fedlc']\n",
        "compare.hosts[1]: train.loss: algorithm 'fedlc' has a loss of its own; leave it out",
    ),
    "a host that ends before re-labelling": (
        "[relabel]\nstart = 30\n[compare]\nhosts = [«{ name = 'moon', train.rounds = 20 }]\n",
        "compare.hosts[0]: relabel.start: a round up to the last one, 20, is needed, got 30",
    ),
    "hosts as tables": (
        "[[compare.hosts]]\nname = 'fedavg'\n[[compare.hosts]]\nname = 'fedprox'\n[compare.hosts.train]\nepochs = «0\n",
        "compare.hosts[1].train.epochs: a whole number from 1 to 100000 is needed, got 0",
    ),
}
