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
«allowed = [[0, 1]]                   | allowed: unknown key; nearest:
«rounds = 60                          | rounds: unknown key
enabled = «1                          | enabled: true or false is needed, got 1
enabled = «"true"                     | enabled: true or false is needed, got 'true'
enabled = «[]                         | enabled: true or false is needed, got a list
start = «0                            | start: a round from 1 or a float in (0, 1] as share of the rounds is needed, g
start = «-5                           | start: a round from 1 or a float in (0, 1] as share of the rounds is needed, g
start = «0.0                          | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «1.5                          | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «80.0                         | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «-0.8                         | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «nan                          | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «inf                          | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «true                         | start: a round from 1 or a float in (0, 1] as share of the rounds is needed, g
start = «"80%"                        | start: a round from 1 or a float in (0, 1] as share of the rounds is needed
start = «[48]                         | start: a round from 1 or a float in (0, 1] as share of the rounds is needed, g
start = «61                           | start: a round up to the last one, 60, is needed, got 61
start = «9223372036854775807          | start: a round up to the last one, 60, is needed, got 9223372036854775807
start = «61; enabled = false          | start: a round up to the last one, 60, is needed, got 61
period = «-1                          | period: a whole number from 0 to 1000000 is needed, got -1
period = «0.5                         | period: a whole number from 0 to 1000000 is needed, got 0.5
period = «true                        | period: a whole number from 0 to 1000000 is needed, got true
period = «"never"                     | period: a whole number from 0 to 1000000 is needed, got 'never'
late = «0                             | late: true or false is needed, got 0
late = «"no"                          | late: true or false is needed, got 'no'
tau = «5                              | tau: a fraction from 0 to 1 is needed, got 5; the official code counts in per
tau = «5.0                            | tau: a fraction from 0 to 1 is needed, got 5.0; the official code counts in pe
tau = «100                            | tau: a fraction from 0 to 1 is needed, got 100; the official code counts in pe
tau = «1.0001                         | tau: a fraction from 0 to 1 is needed, got 1.0001; the official code counts
tau = «-0.05                          | tau: a fraction from 0 to 1 is needed, got -0.05
tau = «nan                            | tau: a fraction from 0 to 1 is needed, got nan
tau = «inf                            | tau: a fraction from 0 to 1 is needed, got inf
tau = «true                           | tau: a fraction from 0 to 1 is needed, got true
tau = «"5%"                           | tau: a fraction from 0 to 1 is needed, got '5%'
tau = «[0.05, 0.1]                    | tau: a fraction from 0 to 1 is needed, got a list
tau = { default = «5 }                | tau.default: a fraction from 0 to 1 is needed, got 5; the official code counts
tau = { «all = 0.05 }                 | tau.all: a client id such as 0, or "default" for all others, is needed
preset = «"papers"                    | preset: one of paper, official is needed, got 'papers'; nearest: paper
preset = «"Official"                  | preset: one of paper, official is needed, got 'Official'; nearest: official
preset = «1                           | preset: one of paper, official is needed, got 1
preset = «["paper"]                   | preset: one of paper, official is needed, got a list
spread = «"pop"                       | spread: one of sample, population is needed, got 'pop'
spread = «"samples"                   | spread: one of sample, population is needed, got 'samples'; nearest: sample
spread = «1                           | spread: one of sample, population is needed, got 1
spread = «false                       | spread: one of sample, population is needed, got false
threshold = «"lower"                  | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «""                       | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «true                     | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «inf                      | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «nan                      | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «[]                       | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = «{ z = 2 }                | threshold: one of higher, order, linear, a z value, or a list with one a class
threshold = [2, «"3"]                 | threshold[1]: a z value is needed, got '3'
threshold = [«inf, 2]                 | threshold[0]: a z value is needed, got inf
threshold = [1.5, 2, «true]           | threshold[2]: a z value is needed, got true
threshold = [«[1], 2, "a"]            | threshold[0]: a z value is needed, got a list (and 1 more)
target = «"max"                       | target: one of argmax, winner is needed, got 'max'; nearest: argmax
target = «"loser"                     | target: one of argmax, winner is needed, got 'loser'
target = «0                           | target: one of argmax, winner is needed, got 0
normalize = «"z"                      | normalize: one of zscore, minmax, none is needed, got 'z'
normalize = «"min-max"                | normalize: one of zscore, minmax, none is needed, got 'min-max'; nearest: minm
normalize = «false                    | normalize: one of zscore, minmax, none is needed, got false
max_fraction = «1.5                   | max_fraction: a number from 0 to 1 is needed, got 1.5
max_fraction = «30                    | max_fraction: a number from 0 to 1 is needed, got 30
max_fraction = «-0.1                  | max_fraction: a number from 0 to 1 is needed, got -0.1
max_fraction = «nan                   | max_fraction: a number from 0 to 1 is needed, got nan
max_fraction = «true                  | max_fraction: a number from 0 to 1 is needed, got true
max_fraction = «"0.3"                 | max_fraction: a number from 0 to 1 is needed, got '0.3'
min_agreement = «1.1                  | min_agreement: a number from 0 to 1 is needed, got 1.1
min_agreement = «-1                   | min_agreement: a number from 0 to 1 is needed, got -1
min_agreement = «50                   | min_agreement: a number from 0 to 1 is needed, got 50
min_agreement = «"half"               | min_agreement: a number from 0 to 1 is needed, got 'half'
forbidden = «"0:1"                    | forbidden: a list of pairs of class ids [from, to] is needed, got '0:1'
forbidden = «true                     | forbidden: a list of pairs of class ids [from, to] is needed, got true
forbidden = «{ 0 = 1 }                | forbidden: a list of pairs of class ids [from, to] is needed, got a table
forbidden = [«0, 1]                   | forbidden[0]: a pair of class ids [from, to] is needed, got 0
forbidden = [[0, 1], «[2]]            | forbidden[1]: a pair of class ids [from, to] is needed, got a list of 1
forbidden = [«[0, 1, 2]]              | forbidden[0]: a pair of class ids [from, to] is needed, got a list of 3
forbidden = [«"ab"]                   | forbidden[0]: a pair of class ids [from, to] is needed, got 'ab'
forbidden = [[0, «-1]]                | forbidden[0][1]: a class id of at least 0 is needed, got -1
forbidden = [[0, 1], [«"sick", 1]]    | forbidden[1][0]: a class id of at least 0 is needed, got 'sick'
forbidden = [[0, «1.0]]               | forbidden[0][1]: a class id of at least 0 is needed, got 1.0
forbidden = [[«false, 1]]             | forbidden[0][0]: a class id of at least 0 is needed, got false
forbidden = [[0, 1], «[3, 3]]         | forbidden[1]: two different classes are needed, got 3 twice
lr_scale = «0                         | lr_scale: a number above 0 is needed, got 0
lr_scale = «-0.1                      | lr_scale: a number above 0 is needed, got -0.1
lr_scale = «inf                       | lr_scale: a number above 0 is needed, got inf
lr_scale = «"0.1"                     | lr_scale: a number above 0 is needed, got '0.1'
lr_scale = «false                     | lr_scale: a number above 0 is needed, got false
moves = «"fedrella"                   | moves: one of fedrela, random is needed, got 'fedrella'; nearest: fedrela
moves = «"control"                    | moves: one of fedrela, random is needed, got 'control'
moves = «true                         | moves: one of fedrela, random is needed, got true
collected = «1                        | collected: true or false is needed, got 1
collected = «"pass"                   | collected: true or false is needed, got 'pass'
passes = «0                           | passes: a whole number from 1 to 1000 is needed, got 0
passes = «5.0                         | passes: a whole number from 1 to 1000 is needed, got 5.0
passes = «1001                        | passes: a whole number from 1 to 1000 is needed, got 1001
passes = «true                        | passes: a whole number from 1 to 1000 is needed, got true
augment = «0                          | augment: true or false is needed, got 0
augment = «"crop"                     | augment: true or false is needed, got 'crop'
train_mode = «1                       | train_mode: true or false is needed, got 1
train_mode = «"train"                 | train_mode: true or false is needed, got 'train'
collected = true; «passes = 5         | passes: with collected = true there is no pass to set this for; leave it out
«augment = true; collected = true     | augment: with collected = true there is no pass to set this for; leave it out
collected = true; «train_mode = true  | train_mode: with collected = true there is no pass to set this for; leave it
«passes = 5; augment = true; train_mode = true; collected = true | passes: with collected = true there is no pass
tau = «5; max_fraction = 5; taw = 5  | tau: a fraction from 0 to 1 is needed, got 5; the official code counts in per
""",
    "relabel.tau": """
0 = «5                                | 0: a fraction from 0 to 1 is needed, got 5; the official code counts in per ce
"3" = «-0.1                           | 3: a fraction from 0 to 1 is needed, got -0.1
3 = 0.1; default = «1.5               | default: a fraction from 0 to 1 is needed, got 1.5; the official code counts i
default = «"0.05"                     | default: a fraction from 0 to 1 is needed, got '0.05'
default = «true                       | default: a fraction from 0 to 1 is needed, got true
default = «{ a = 1 }                  | default: a fraction from 0 to 1 is needed, got a table
1 = «[0.1]                            | 1: a fraction from 0 to 1 is needed, got a list
«defaults = 0.05                      | defaults: a client id such as 0, or "default" for all others, is needed
«Default = 0.05                       | Default: a client id such as 0, or "default" for all others, is needed
«client0 = 0.05                       | client0: a client id such as 0, or "default" for all others, is needed
«-1 = 0.05                            | -1: a client id such as 0, or "default" for all others, is needed
«007 = 0.05                           | 007: a client id such as 0, or "default" for all others, is needed
«"1.0" = 0.05                         | "1.0": a client id such as 0, or "default" for all others, is needed
«"" = 0.05                            | "": a client id such as 0, or "default" for all others, is needed
«"²" = 0.05                           | "²": a client id such as 0, or "default" for all others, is needed
«99999999999999999999 = 0.05          | 99999999999999999999: a client id such as 0, or "default" for all others, is
«10 = 0.05                            | 10: a client id from 0 to 9 is needed
0 = 0.1; «999999999999999999 = 0.05   | 999999999999999999: a client id from 0 to 9 is needed
9 = 0.1; «10 = 0.05; 11 = 0.2         | 10: a client id from 0 to 9 is needed (and 1 more)
«all = 5; default = 0.1               | all: a client id such as 0, or "default" for all others, is needed (and 1 more
""",
}
