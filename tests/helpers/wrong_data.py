"""Battery B17: wrong tables of data; `wrong_files` says how a line is read."""

from __future__ import annotations

CASES = {
    "data": """
«sorce = "digits"                     | sorce: unknown key; nearest: source
«Source = "digits"                    | Source: unknown key; nearest: source
«q = 1                                | q: unknown key; this table has source, root, options, imbalance,
«seed = 1                             | seed: unknown key
«alpha = 0.3                          | alpha: unknown key
«"a b" = 1                            | "a b": unknown key
source = «"digit"                     | source: expected one of cifar10, cifar100, csv, digits,
source = «"DIGITS"                    | source: expected one of cifar10
source = «3                           | source: expected one of cifar10
source = «["digits"]                  | source: expected one of cifar10
source = «true                        | source: expected one of cifar10
root = «7                             | root: expected a path, got 7
root = «""                            | root: expected a path of at least one character
root = «"a\\u0000b"                   | root: expected a path of at least one character and without control characters
root = «["data"]                      | root: expected a path, got a list
validation = «1.0                     | validation: expected a number >= 0 and < 1, got 1.0
validation = «-0.1                    | validation: expected a number >= 0 and < 1, got -0.1
validation = «20                      | validation: expected a number >= 0 and < 1, got 20
validation = «"0.2"                   | validation: expected a number >= 0 and < 1, got '0.2'
validation = «false                   | validation: expected a number >= 0 and < 1, got false
validation = «nan                     | validation: expected a number >= 0 and < 1, got nan
scaling = «"fitted"                   | scaling: expected one of fit, local, none, or a table { mean, std }, got
scaling = «1                          | scaling: expected fit, local, none, or a table { mean, std }, got 1
scaling = { mean = [0], std = «[0] }  | scaling.std: expected a list of numbers above 0, one per channel, got a list
standardize = «"global"               | standardize: expected one of pooled, local, none, got 'global'
standardize = «false                  | standardize: expected one of pooled, local, none, got false
protocol = «"fedlog"                  | protocol: expected one of counts, fedloge, fedrela-release, got 'fedlog'
protocol = «"fedloge"; imbalance = { kind = "step", ratio = 2 } | protocol: not used with minority classes
imbalance.ratio = 2; protocol = «"fedrela-release"; imbalance.kind = "step" | protocol: not used with minority classes
imbalance = «"step"                   | imbalance: expected a table, got 'step'
imbalance = «[{ kind = "natural" }]   | imbalance: expected a table, got a list
partition = «10                       | partition: expected a table, got 10
options = «1979-05-27                 | options: expected a table, got a date or time
source = "csv"; «file = "x.csv"       | file: unknown key
source = «"csvv"; validation = 9      | source: expected one of cifar10, cifar100, csv, digits, fashion_mnist
validation = «9; source = "csvv"      | validation: expected a number >= 0 and < 1, got 9 (and 1 more)
""",
    "data.options": """
«sise = 3                             | sise: unknown key; source 'digits' has none
«seed = 1; x = 2                      | seed: unknown key; source 'digits' has none (and 1 more)
«sise = {}; x = 2                     | sise: unknown key; source 'digits' has none (and 1 more)
""",
    "data.imbalance": """
kind = «"stepp"                       | kind: expected one of natural, step, long_tail, got 'stepp'; nearest: step
kind = «1                             | kind: expected one of natural, step, long_tail, got 1
kind = "step"                         | ratio: a number >= 1 is missing; kind 'step' needs it
kind = "long_tail"; largest = 50      | factor: a number >= 1 is missing; kind 'long_tail' needs it
kind = "step"; ratio = «0.5           | ratio: expected a number >= 1, got 0.5
kind = "step"; ratio = «-20           | ratio: expected a number >= 1, got -20
kind = "step"; ratio = «inf           | ratio: expected a number >= 1, got inf
kind = "step"; ratio = «true          | ratio: expected a number >= 1, got true
kind = "step"; ratio = «"20"          | ratio: expected a number >= 1, got '20'
kind = "step"; «ration = 20           | ration: unknown key; nearest: ratio
kind = "step"; «factor = 9; ratio = 2 | factor: kind 'step' does not use it; leave it out
«ratio = 20                           | ratio: kind 'natural' does not use it; leave it out
«side = "last"; kind = "natural"      | side: kind 'natural' does not use it; leave it out
kind = "long_tail"; «minority = 0.5; factor = 9 | minority: kind 'long_tail' does not use it
kind = "long_tail"; factor = «0       | factor: expected a number >= 1, got 0
kind = "long_tail"; factor = 9; largest = «0   | largest: expected an integer from 1 to 1000000000, got 0
kind = "long_tail"; factor = 9; largest = «5.0 | largest: expected an integer from 1 to 1000000000, got 5.0
kind = "long_tail"; factor = 9; largest = «1000000001 | largest: expected an integer from 1 to 1000000000
kind = "step"; ratio = 2; minority = «1.5      | minority: expected a list of class ids, or a share from 0 to 1
kind = "step"; ratio = 2; minority = «3        | minority: expected a list of class ids, or a share from 0 to 1
kind = "step"; ratio = 2; minority = «"last"   | minority: expected a list of class ids, or a share from 0 to 1
kind = "step"; ratio = 2; minority = [0, «-1]  | minority[1]: expected a class id >= 0, got -1
kind = "step"; ratio = 2; minority = [«0.5, 1] | minority[0]: expected a class id >= 0, got 0.5
kind = "step"; ratio = 2; minority = [1, 2, «"3"] | minority[2]: expected a class id >= 0, got '3'
kind = "step"; ratio = 2; minority = «[1, 1]   | minority: expected different class ids
kind = "step"; ratio = 2; side = «"left"       | side: expected one of last, first, got 'left'
kind = "step"; ratio = 2; side = «"first"; minority = [1] | side: applies only to a share of the classes
kind = "step"; ratio = 2; order = «"sorted"    | order: expected one of natural, random, or a list of class ids
kind = "step"; ratio = 2; order = «[0, 2]      | order: expected each class id from 0 to 1 once
kind = "step"; ratio = 2; order = [«true, 0]   | order[0]: expected a class id >= 0, got true
""",
    "data.partition": """
kind = "dirichlet"; alpha = 0.3       | clients: an integer from 1 to 1000000 is missing; kind 'dirichlet'
clients = 10                          | alpha: a number from 0.01 to 1000000 is missing; kind 'dirichlet'
kind = "iid"                          | clients: an integer from 1 to 1000000 is missing; kind 'iid' needs it
kind = "shards"; clients = 4          | classes_per_client: an integer from 1 to 1000000000 is missing
kind = «"dirichlett"; clients = 4     | kind: expected one of dirichlet, iid, natural, shards, got 'dirich
kind = «["iid"]; clients = 4          | kind: expected one of dirichlet, iid, natural, shards, got a list
clients = 10; «alpah = 0.3            | alpah: unknown key; nearest: alpha
«client = 10; alpha = 0.3             | client: unknown key; nearest: clients
clients = «0; alpha = 0.3             | clients: expected an integer from 1 to 1000000, got 0
clients = «10.0; alpha = 0.3          | clients: expected an integer from 1 to 1000000, got 10.0
clients = «true; alpha = 0.3          | clients: expected an integer from 1 to 1000000, got true
clients = «99999999999999999999; alpha = 1 | clients: expected a number of at most 64 bits
clients = «1000001; alpha = 1         | clients: expected an integer from 1 to 1000000, got 1000001
clients = «1000000000000; alpha = 1; min_size = 0 | clients: expected an integer from 1 to 1000000
clients = 1; alpha = 1; min_size = «1000000001 | min_size: expected an integer from 0 to 1000000000
kind = "shards"; clients = 1; classes_per_client = «1000000001 | classes_per_client: expected an integer from 1 to 1
clients = 10; alpha = «0              | alpha: expected a number from 0.01 to 1000000, got 0
clients = 10; alpha = «1e7            | alpha: expected a number from 0.01 to 1000000, got 10000000.0
clients = 10; alpha = «"0.3"          | alpha: expected a number from 0.01 to 1000000, got '0.3'
clients = 10; alpha = «[0.3]          | alpha: expected a number from 0.01 to 1000000, got a list
clients = 10; alpha = 1; scheme = «"even"   | scheme: expected one of proportional, multinomial, niid_bench, equal
clients = 10; alpha = 1; min_size = «-1     | min_size: expected an integer from 0 to 1000000000, got -1
clients = 10; alpha = 1; numpy_seed = «4294967296 | numpy_seed: expected an integer from 0 to 4294967295
clients = 10; alpha = 1; numpy_seed = 1; min_size = «5 | min_size: numpy_seed follows the official code
clients = 10; alpha = 1; «classes_per_client = 2 | classes_per_client: kind 'dirichlet' does not use it
kind = "iid"; clients = 4; «alpha = 0.3     | alpha: kind 'iid' does not use it; leave it out
kind = "natural"; «min_size = 10            | min_size: kind 'natural' does not use it; leave it out
kind = "shards"; clients = 4; classes_per_client = «0 | classes_per_client: expected an integer from 1 to 1000000000
kind = "shards"; «scheme = "equal"; clients = 4; classes_per_client = 2 | scheme: kind 'shards' does not
""",
}
