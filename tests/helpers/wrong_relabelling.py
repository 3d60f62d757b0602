"""Battery B17: wrong tables of re-labelling; `wrong_files` says how a line is read."""

from __future__ import annotations

CASES = {
    "relabel": """
«enable = true                        | enable: unknown key; nearest: enabled
«Tau = 0.05                           | Tau: unknown key; nearest: tau
«taus = [0.05]                        | taus: unknown key; nearest: tau
«T = 48                               | T: unknown key; nearest: tau
«start_round = 48                     | start_round: unknown key; nearest: start
«maxfraction = 0.5                    | maxfraction: unknown key; nearest: max_fraction
«lr-scale = 0.1                       | lr-scale: unknown key; nearest: lr_scale
«posterior = "pass"                   | posterior: unknown key
«rounds = 60                          | rounds: unknown key
enabled = «1                          | enabled: expected true or false, got 1
enabled = «"true"                     | enabled: expected true or false, got 'true'
enabled = «[]                         | enabled: expected true or false, got a list
start = «0                            | start: expected a round >= 1 or a share of the rounds in (0, 1], g
start = «-5                           | start: expected a round >= 1 or a share of the rounds in (0, 1], g
start = «0.0                          | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «1.5                          | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «80.0                         | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «-0.8                         | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «nan                          | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «inf                          | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «true                         | start: expected a round >= 1 or a share of the rounds in (0, 1], g
start = «"80%"                        | start: expected a round >= 1 or a share of the rounds in (0, 1]
start = «[48]                         | start: expected a round >= 1 or a share of the rounds in (0, 1], g
start = «61                           | start: expected a round up to the last one, 60, got 61
start = «9223372036854775807          | start: expected a round up to the last one, 60, got 9223372036854775807
start = «61; enabled = false          | start: expected a round up to the last one, 60, got 61
period = «-1                          | period: expected an integer from 0 to 1000000, got -1
period = «0.5                         | period: expected an integer from 0 to 1000000, got 0.5
period = «true                        | period: expected an integer from 0 to 1000000, got true
period = «"never"                     | period: expected an integer from 0 to 1000000, got 'never'
late = «0                             | late: expected true or false, got 0
late = «"no"                          | late: expected true or false, got 'no'
tau = «5                              | tau: expected a fraction from 0 to 1, got 5; the official code counts in per
tau = «5.0                            | tau: expected a fraction from 0 to 1, got 5.0; the official code counts in pe
tau = «100                            | tau: expected a fraction from 0 to 1, got 100; the official code counts in pe
tau = «1.0001                         | tau: expected a fraction from 0 to 1, got 1.0001; the official code counts
tau = «-0.05                          | tau: expected a fraction from 0 to 1, got -0.05
tau = «nan                            | tau: expected a fraction from 0 to 1, got nan
tau = «inf                            | tau: expected a fraction from 0 to 1, got inf
tau = «true                           | tau: expected a fraction from 0 to 1, got true
tau = «"5%"                           | tau: expected a fraction from 0 to 1, got '5%'
tau = «[0.05, 0.1]                    | tau: expected a fraction from 0 to 1, got a list
tau = { default = «5 }                | tau.default: expected a fraction from 0 to 1, got 5; the official code counts
tau = { «all = 0.05 }                 | tau.all: expected a client id such as 0, or "default" for all others
preset = «"papers"                    | preset: expected one of paper, official, got 'papers'; nearest: paper
preset = «"Official"                  | preset: expected one of paper, official, got 'Official'; nearest: official
preset = «1                           | preset: expected one of paper, official, got 1
preset = «["paper"]                   | preset: expected one of paper, official, got a list
spread = «"pop"                       | spread: expected one of sample, population, got 'pop'
spread = «"samples"                   | spread: expected one of sample, population, got 'samples'; nearest: sample
spread = «1                           | spread: expected one of sample, population, got 1
spread = «false                       | spread: expected one of sample, population, got false
threshold = «"lower"                  | threshold: expected
threshold = «""                       | threshold: expected
threshold = «true                     | threshold: expected
threshold = «inf                      | threshold: expected
threshold = «nan                      | threshold: expected
threshold = «[]                       | threshold: expected
threshold = «{ z = 2 }                | threshold: expected
threshold = [2, «"3"]                 | threshold[1]: expected a z value, got '3'
threshold = [«inf, 2]                 | threshold[0]: expected a z value, got inf
threshold = [1.5, 2, «true]           | threshold[2]: expected a z value, got true
threshold = [«[1], 2, "a"]            | threshold[0]: expected a z value, got a list
target = «"max"                       | target: expected one of argmax, winner, got 'max'; nearest: argmax
target = «"loser"                     | target: expected one of argmax, winner, got 'loser'
target = «0                           | target: expected one of argmax, winner, got 0
method = «"fedrelo"                   | method: expected one of confident, fedrela, margin, random, got 'fedrelo'; nea
method = «1                           | method: expected a re-allocator
method = «"fedrela.core:Ledger"       | method: expected a re-allocator
method = «"no_such_module:Mine"       | method: no module 'no_such_module'
params = «1                           | params: expected a table of the method's own parameters, got 1
params = { «width = 2 }              | params.width: unknown parameter; method 'FedReLa' has none
method = "helpers.own_parts:Swap"; params = { every = «0 } | params.every: expected an integer >= 1, got 0
method = "helpers.own_parts:Swap"; params = { «evry = 2 } | params.evry: unknown parameter; nearest: every
method = "random"; «normalize = "none" | normalize: method 'random' does not use it; leave it out
normalize = «"z"                      | normalize: expected one of zscore, minmax, none, got 'z'
normalize = «"min-max"                | normalize: expected one of zscore, minmax, none, got 'min-max'; nearest: minm
normalize = «false                    | normalize: expected one of zscore, minmax, none, got false
max_fraction = «1.5                   | max_fraction: expected a number from 0 to 1, got 1.5
max_fraction = «30                    | max_fraction: expected a number from 0 to 1, got 30
max_fraction = «-0.1                  | max_fraction: expected a number from 0 to 1, got -0.1
max_fraction = «nan                   | max_fraction: expected a number from 0 to 1, got nan
max_fraction = «true                  | max_fraction: expected a number from 0 to 1, got true
max_fraction = «"0.3"                 | max_fraction: expected a number from 0 to 1, got '0.3'
min_agreement = «1.1                  | min_agreement: expected a number from 0 to 1, got 1.1
min_agreement = «-1                   | min_agreement: expected a number from 0 to 1, got -1
min_agreement = «50                   | min_agreement: expected a number from 0 to 1, got 50
min_agreement = «"half"               | min_agreement: expected a number from 0 to 1, got 'half'
forbidden = «"0:1"                    | forbidden: expected a list of pairs of classes [from, to], got '0:1'
forbidden = «true                     | forbidden: expected a list of pairs of classes [from, to], got true
forbidden = «{ 0 = 1 }                | forbidden: expected a list of pairs of classes [from, to], got a table
forbidden = [«0, 1]                   | forbidden[0]: expected a pair of classes [from, to], got 0
forbidden = [[0, 1], «[2]]            | forbidden[1]: expected a pair of classes [from, to], got a list
forbidden = [«[0, 1, 2]]              | forbidden[0]: expected a pair of classes [from, to], got a list
forbidden = [«"ab"]                   | forbidden[0]: expected a pair of classes [from, to], got 'ab'
forbidden = [[0, «-1]]                | forbidden[0][1]: expected a class number >= 0 or a class name, got -1
keep = «3                             | keep: expected a list of rows, by number or id, got 3
keep = [0, «-1]                       | keep[1]: expected a row number >= 0 or an id, got -1
absent = «0                           | absent: expected true or false, got 0
class_tau = «0.1                      | class_tau: expected a table class -> fraction, got 0.1
class_tau = { ill = «5 }              | class_tau.ill: expected a fraction from 0 to 1, got 5
allowed = [[0, «-1]]                  | allowed[0][1]: expected a class number >= 0 or a class name, got -1
allowed = «[[true, false]]            | allowed: expected a list of pairs of classes [from, to], got booleans
forbidden = [[0, «1.0]]               | forbidden[0][1]: expected a class number >= 0 or a class name, got 1.0
forbidden = [[«false, 1]]             | forbidden[0][0]: expected a class number >= 0 or a class name, got false
forbidden = [[0, 1], «[3, 3]]         | forbidden[1]: expected two different classes, got 3 twice
params = «5                           | params: expected a table of the method's own parameters, got 5
params = «[1]                         | params: expected a table of the method's own parameters, got a list
lr_scale = «0                         | lr_scale: expected a number > 0, got 0
lr_scale = «-0.1                      | lr_scale: expected a number > 0, got -0.1
lr_scale = «inf                       | lr_scale: expected a number > 0, got inf
lr_scale = «"0.1"                     | lr_scale: expected a number > 0, got '0.1'
lr_scale = «false                     | lr_scale: expected a number > 0, got false
moves = «"fedrella"                   | moves: expected one of fedrela, random, got 'fedrella'; nearest: fedrela
moves = «"control"                    | moves: expected one of fedrela, random, got 'control'
moves = «true                         | moves: expected one of fedrela, random, got true
collected = «1                        | collected: expected true or false, got 1
collected = «"pass"                   | collected: expected true or false, got 'pass'
passes = «0                           | passes: expected an integer from 1 to 1000, got 0
passes = «5.0                         | passes: expected an integer from 1 to 1000, got 5.0
passes = «1001                        | passes: expected an integer from 1 to 1000, got 1001
passes = «true                        | passes: expected an integer from 1 to 1000, got true
augment = «0                          | augment: expected true or false, got 0
augment = «"crop"                     | augment: expected true or false, got 'crop'
train_mode = «1                       | train_mode: expected true or false, got 1
train_mode = «"train"                 | train_mode: expected true or false, got 'train'
collected = true; «passes = 5         | passes: with collected = true there is no pass to set this for; leave it out
«augment = true; collected = true     | augment: with collected = true there is no pass to set this for; leave it out
collected = true; «train_mode = true  | train_mode: with collected = true there is no pass to set this for; leave it
«passes = 5; augment = true; train_mode = true; collected = true | passes: with collected = true there is no pass
tau = «5; max_fraction = 5; taw = 5  | tau: expected a fraction from 0 to 1, got 5; the official code counts in per
""",
    "relabel.tau": """
0 = «5                                | 0: expected a fraction from 0 to 1, got 5; the official code counts in per ce
"3" = «-0.1                           | 3: expected a fraction from 0 to 1, got -0.1
3 = 0.1; default = «1.5               | default: expected a fraction from 0 to 1, got 1.5; the official code counts i
default = «"0.05"                     | default: expected a fraction from 0 to 1, got '0.05'
default = «true                       | default: expected a fraction from 0 to 1, got true
default = «{ a = 1 }                  | default: expected a fraction from 0 to 1, got a table
1 = «[0.1]                            | 1: expected a fraction from 0 to 1, got a list
«defaults = 0.05                      | defaults: expected a client id such as 0, or "default" for all others
«Default = 0.05                       | Default: expected a client id such as 0, or "default" for all others
«client0 = 0.05                       | client0: expected a client id such as 0, or "default" for all others
«-1 = 0.05                            | -1: expected a client id such as 0, or "default" for all others
«007 = 0.05                           | 007: expected a client id such as 0, or "default" for all others
«"1.0" = 0.05                         | "1.0": expected a client id such as 0, or "default" for all others
«"" = 0.05                            | "": expected a client id such as 0, or "default" for all others
«"²" = 0.05                           | "²": expected a client id such as 0, or "default" for all others
«99999999999999999999 = 0.05          | 99999999999999999999: expected a client id such as 0, or "default" for all
«10 = 0.05                            | 10: expected a client id from 0 to 9
0 = 0.1; «999999999999999999 = 0.05   | 999999999999999999: expected a client id from 0 to 9
9 = 0.1; «10 = 0.05; 11 = 0.2         | 10: expected a client id from 0 to 9 (and 1 more)
«all = 5; default = 0.1               | all: expected a client id such as 0, or "default" for all others
""",
}
