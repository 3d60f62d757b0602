"""Battery B17: wrong tables of model, algorithm, training, engine and report; `wrong_files` says how a line is read."""

from __future__ import annotations

CASES = {
    "model": """
«nam = "mlp"                          | nam: unknown key; nearest: name
«Name = "mlp"                         | Name: unknown key; nearest: name
«hiden = [64]                         | hiden: unknown key; nearest: hidden
«width = 16                           | width: unknown key; model 'mlp' has name, projection, dtype, hidden
«norm = "batch"                       | norm: unknown key; nearest: name
«q = 1                                | q: unknown key; model 'mlp' has name, projection, dtype, hidden
«"" = 1                               | "": unknown key; model 'mlp' has
name = "logistic"; «hidden = [64]     | hidden: unknown key; model 'logistic' has name, projection, dtype
name = "resnet8"; «hidden = [64]      | hidden: unknown key; model 'resnet8' has name, projection, dtype, width, norm
name = "resnet50"; «width = 16        | width: unknown key; model 'resnet50' has name, projection, dtype, norm
name = "cnn_small"; «norms = "batch"  | norms: unknown key; model 'cnn_small' has name, projection, dtype
«input_shape = [3, 32, 32]            | input_shape: unknown key
name = «"mpl"                         | name: expected one of cnn, cnn_small, convnet, logistic, mlp, resnet18
name = «"MLP"                         | name: expected one of cnn
name = «"resnet"                      | name: expected one of cnn
name = «""                            | name: expected one of cnn
name = «1                             | name: expected one of cnn
name = «true                          | name: expected one of cnn
name = «["mlp"]                       | name: expected one of cnn
name = «{ mlp = 1 }                   | name: expected one of cnn
name = «1979-05-27                    | name: expected one of cnn
projection = «-1                      | projection: expected an integer from 0 to 1000000, got -1
projection = «1.0                     | projection: expected an integer from 0 to 1000000, got 1.0
projection = «true                    | projection: expected an integer from 0 to 1000000, got true
projection = «"64"                    | projection: expected an integer from 0 to 1000000, got '64'
projection = «1000001                 | projection: expected an integer from 0 to 1000000, got 1000001
projection = «[64]                    | projection: expected an integer from 0 to 1000000, got a list
dtype = «"float16"                    | dtype: expected one of float32, float64, got 'float16'; nearest: float
dtype = «"bfloat16"                   | dtype: expected one of float32, float64, got 'bfloat16'
dtype = «32                           | dtype: expected one of float32, float64, got 32
hidden = «64                          | hidden: expected a list of integers, one per layer, got 64
hidden = «"64"                        | hidden: expected a list of integers, one per layer, got '64'
hidden = «true                        | hidden: expected a list of integers, one per layer, got true
hidden = «{ a = 64 }                  | hidden: expected a list of integers, one per layer, got a table
hidden = [«0]                         | hidden[0]: expected an integer from 1 to 1000000, got 0
hidden = [64, «-32]                   | hidden[1]: expected an integer from 1 to 1000000, got -32
hidden = [64, «1000001]               | hidden[1]: expected an integer from 1 to 1000000, got 1000001
hidden = [64, «32.0]                  | hidden[1]: expected an integer from 1 to 1000000, got 32.0
hidden = [64, 32, «"16"]              | hidden[2]: expected an integer from 1 to 1000000, got '16'
hidden = [«true, 64]                  | hidden[0]: expected an integer from 1 to 1000000, got true
hidden = [«[64], 32]                  | hidden[0]: expected an integer from 1 to 1000000, got a list
hidden = [«0, 64, "a"]                | hidden[0]: expected an integer from 1 to 1000000, got 0
name = "resnet8"; width = «0          | width: expected an integer from 1 to 1000000, got 0
name = "resnet8"; width = «16.0       | width: expected an integer from 1 to 1000000, got 16.0
name = "resnet20"; width = «[16]      | width: expected an integer from 1 to 1000000, got a list
name = "resnet8"; norm = «"layer"     | norm: expected one of batch, group, got 'layer'
name = "resnet18"; norm = «"bacth"    | norm: expected one of batch, group, got 'bacth'; nearest: batch
name = "resnet50"; norm = «true       | norm: expected one of batch, group, got true
name = "resnet50"; norm = «["batch"]  | norm: expected one of batch, group, got a list
width = «0; norm = "x"; name = "resnet32" | width: expected an integer from 1 to 1000000, got 0 (and 1 more)
""",
    "algorithm": """
«nmae = "fedavg"                      | nmae: unknown key; nearest: name
«mu = 0.01                            | mu: unknown key; algorithm 'fedavg' has name
«lr = 0.1                             | lr: unknown key; algorithm 'fedavg' has name
«rounds = 10                          | rounds: unknown key
«options = { mu = 1 }                 | options: unknown key
«Name = "fedavg"                      | Name: unknown key; nearest: name
name = «"fedavgg"                     | name: expected one of
name = «"FedAvg"                      | name: expected one of
name = «""                            | name: expected one of
name = «0                             | name: expected one of
name = «false                         | name: expected one of
name = «["fedavg", "fedprox"]         | name: expected one of
name = «{}                            | name: expected one of
«beta = 0.5                           | beta: server 'average' does not use it; leave it out
server = "momentum"; «eps = 0.1       | eps: server 'momentum' does not use it; leave it out
name = "climb"; core = "fedavg"; «eta = 1.0 | eta: core 'fedavg' does not use it; leave it out
name = "ratioloss"; rule = "port"; «dominance = 0.5 | dominance: rule 'port' does not use it; leave it out
name = "fedloge"; scored = "frame"; «norm = 2.0 | norm: scored 'frame' does not use it; leave it out
name = "creff"; retrain_epochs = 0; «match_lr = 0.5 | match_lr: retrain_epochs 0 does not use it; leave it out
name = "fedyoyo"; views = "none"; «lam = 4.0 | lam: views 'none' does not use it; leave it out
name = "fedprox"; «Mu = 0.1           | Mu: unknown key; nearest: mu
name = "fedprox"; «mus = 0.1          | mus: unknown key; nearest: mu
name = "fedprox"; «alpha = 0.1        | alpha: unknown key;
name = "fedprox"; mu = «-0.01         | mu: expected a number >= 0, got -0.01
name = "fedprox"; mu = «"0.01"        | mu: expected a number >= 0, got '0.01'
name = "fedprox"; mu = «true          | mu: expected a number >= 0, got true
name = "fedprox"; mu = «nan           | mu: expected a number >= 0, got nan
name = "fedprox"; mu = «inf           | mu: expected a number >= 0, got inf
name = "fedprox"; mu = «[0.01]        | mu: expected a number >= 0, got
name = "fedprox"; mu = «{ a = 1 }     | mu: expected a number >= 0, got a table
name = "fedprox"; mu = «07:32:00      | mu: expected a number >= 0, got a date or time
mu = «-1; nu = 1; name = "fedprox"   | mu: expected a number >= 0, got -1 (and 1 more)
""",
    "train": """
«round = 60                           | round: unknown key; nearest: rounds
«Rounds = 60                          | Rounds: unknown key; nearest: rounds
«learning_rate = 0.1                  | learning_rate: unknown key
«batchsize = 16                       | batchsize: unknown key; nearest: batch_size
«local_epochs = 2                     | local_epochs: unknown key
«weight-decay = 0                     | weight-decay: unknown key; nearest: weight_decay
«clients = 10                         | clients: unknown key; nearest: min_clients
«optimizer = "adam"                   | optimizer: unknown key
«tau = 0.05                           | tau: unknown key
«seed = 1                             | seed: unknown key; nearest:
rounds = «0                           | rounds: expected an integer from 1 to 1000000, got 0
rounds = «-60                         | rounds: expected an integer from 1 to 1000000, got -60
rounds = «60.0                        | rounds: expected an integer from 1 to 1000000, got 60.0
rounds = «"60"                        | rounds: expected an integer from 1 to 1000000, got '60'
rounds = «true                        | rounds: expected an integer from 1 to 1000000, got true
rounds = «[60]                        | rounds: expected an integer from 1 to 1000000, got a list
rounds = «1000001                     | rounds: expected an integer from 1 to 1000000, got 1000001
rounds = «99999999999999999999        | rounds: expected a number of at most 64 bits
participation = «0                    | participation: expected a number > 0 and <= 1, got 0
participation = «0.0                  | participation: expected a number > 0 and <= 1, got 0.0
participation = «-0.1                 | participation: expected a number > 0 and <= 1, got -0.1
participation = «1.01                 | participation: expected a number > 0 and <= 1, got 1.01
participation = «10                   | participation: expected a number > 0 and <= 1, got 10
participation = «"all"                | participation: expected a number > 0 and <= 1, got 'all'
participation = «true                 | participation: expected a number > 0 and <= 1, got true
participation = «nan                  | participation: expected a number > 0 and <= 1, got nan
epochs = «0                           | epochs: expected an integer from 1 to 100000, got 0
epochs = «2.5                         | epochs: expected an integer from 1 to 100000, got 2.5
epochs = «false                       | epochs: expected an integer from 1 to 100000, got false
epochs = «100001                      | epochs: expected an integer from 1 to 100000, got 100001
batch_size = «0                       | batch_size: expected an integer from 1 to 1000000000, got 0
batch_size = «-16                     | batch_size: expected an integer from 1 to 1000000000, got -16
batch_size = «16.0                    | batch_size: expected an integer from 1 to 1000000000, got 16.0
batch_size = «"full"                  | batch_size: expected an integer from 1 to 1000000000, got 'full'
lr = «0                               | lr: expected a number > 0, got 0
lr = «-0.05                           | lr: expected a number > 0, got -0.05
lr = «inf                             | lr: expected a number > 0, got inf
lr = «nan                             | lr: expected a number > 0, got nan
lr = «"0.05"                          | lr: expected a number > 0, got '0.05'
lr = «[0.05, 0.01]                    | lr: expected a number > 0, got a list
lr = «true                            | lr: expected a number > 0, got true
lr = «{ start = 0.1 }                 | lr: expected a number > 0, got a table
momentum = «1                         | momentum: expected a number >= 0 and < 1, got 1
momentum = «1.5                       | momentum: expected a number >= 0 and < 1, got 1.5
momentum = «-0.9                      | momentum: expected a number >= 0 and < 1, got -0.9
momentum = «"0.9"                     | momentum: expected a number >= 0 and < 1, got '0.9'
weight_decay = «-1e-5                 | weight_decay: expected a number >= 0, got -1e-05
weight_decay = «inf                   | weight_decay: expected a number >= 0, got inf
weight_decay = «false                 | weight_decay: expected a number >= 0, got false
weight_decay = «"1e-5"                | weight_decay: expected a number >= 0, got '1e-5'
loss = «"crossentropy"                | loss: expected one of balanced_softmax, class_balanced, cross_entropy, focal
loss = «"CE"                          | loss: expected one of balanced_softmax
loss = «"fedlc"                       | loss: expected one of balanced_softmax
loss = «"contrastive"                 | loss: expected one of balanced_softmax
loss = «0                             | loss: expected one of balanced_softmax
loss = «["focal"]                     | loss: expected one of balanced_softmax
schedule = «"linear"                  | schedule: expected one of constant, step, cosine, got 'linear'
schedule = «"cos"                     | schedule: expected one of constant, step, cosine, got 'cos'; nearest: cosine
schedule = «"Step"                    | schedule: expected one of constant, step, cosine, got 'Step'; nearest: step
schedule = «false                     | schedule: expected one of constant, step, cosine, got false
«gamma = 0.2                          | gamma: schedule 'constant' does not use it; leave it out
«milestones = [0.5]; lr = 0.1         | milestones: schedule 'constant' does not use it; leave it out
«lr_end = 0.1; schedule = "constant"  | lr_end: schedule 'constant' does not use it; leave it out
schedule = "cosine"; «gamma = 0.5     | gamma: schedule 'cosine' does not use it; leave it out
«milestones = []; schedule = "cosine" | milestones: schedule 'cosine' does not use it; leave it out
schedule = "step"; «lr_end = 0.5      | lr_end: schedule 'step' does not use it; leave it out
«gamma = 1; lr_end = 1                | gamma: schedule 'constant' does not use it; leave it out (and 1 more)
schedule = "step"; gamma = «0         | gamma: expected a number > 0 and <= 1, got 0
schedule = "step"; gamma = «10        | gamma: expected a number > 0 and <= 1, got 10
schedule = "step"; gamma = «"0.1"     | gamma: expected a number > 0 and <= 1, got '0.1'
schedule = "cosine"; lr_end = «1.1    | lr_end: expected a number from 0 to 1, got 1.1
schedule = "cosine"; lr_end = «-0.1   | lr_end: expected a number from 0 to 1, got -0.1
schedule = "step"; milestones = «0.5  | milestones: expected a list of rounds, or of shares of them, got 0.5
schedule = "step"; milestones = «"half" | milestones: expected a list of rounds, or of shares of them, got 'half'
schedule = "step"; milestones = «{}   | milestones: expected a list of rounds, or of shares of them, got a table
schedule = "step"; milestones = [«0, 30]    | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [30, «-1]   | milestones[1]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [0.5, «1.0] | milestones[1]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [«0.0]      | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [«75.5]     | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [«nan]      | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [«true]     | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = [0.5, «"0.75"] | milestones[1]: expected a round from 1, or a share of the rounds above
schedule = "step"; milestones = [«[30, 45]] | milestones[0]: expected a round from 1, or a share of the rounds above 0
schedule = "step"; milestones = «[30, 30]   | milestones: expected distinct milestones
schedule = "step"; milestones = [30, «61]   | milestones[1]: expected a round up to the last one, 60, got 61
schedule = "step"; milestones = [«50, 75]; rounds = 40 | milestones[0]: expected a round up to the last one, 40
clip = «-1                            | clip: expected a number >= 0, got -1
clip = «inf                           | clip: expected a number >= 0, got inf
clip = «false                         | clip: expected a number >= 0, got false
clip = «"norm"                        | clip: expected a number >= 0, got 'norm'
precision = «"float64"                | precision: expected
precision = «16                       | precision: expected
augment = «1                          | augment: expected true or false, got 1
augment = «"true"                     | augment: expected true or false, got 'true'
augment = «["flip"]                   | augment: expected true or false, got a list
evaluate_every = «0                   | evaluate_every: expected an integer from 1 to 1000000, got 0
evaluate_every = «1.5                 | evaluate_every: expected an integer from 1 to 1000000, got 1.5
evaluate_every = «"never"             | evaluate_every: expected an integer from 1 to 1000000, got 'never'
local_test = «0                       | local_test: expected true or false, got 0
local_test = «"yes"                   | local_test: expected true or false, got 'yes'
min_clients = «0                      | min_clients: expected an integer from 1 to 1000000, got 0
min_clients = «0.5                    | min_clients: expected an integer from 1 to 1000000, got 0.5
min_clients = «1000001                | min_clients: expected an integer from 1 to 1000000, got 1000001
min_clients = «11                     | min_clients: expected at most 10, the number of clients in a round, got 11
min_clients = «4; participation = 0.3 | min_clients: expected at most 3, the number of clients in a round, got 4
participation = 0.01; min_clients = «2 | min_clients: expected at most 1, the number of clients in a round, got 2
deadline = «-1                        | deadline: expected a number >= 0, got -1
deadline = «inf                       | deadline: expected a number >= 0, got inf
deadline = «"30s"                     | deadline: expected a number >= 0, got '30s'
deadline = «00:00:30                  | deadline: expected a number >= 0, got a date or time
norm_limit = «-50                     | norm_limit: expected 0 (off) or a number >= 1, got -50
norm_limit = «0.5                     | norm_limit: expected 0 (off) or a number >= 1, got 0.5
norm_limit = «true                    | norm_limit: expected 0 (off) or a number >= 1, got true
give_up = «0                          | give_up: expected an integer from 1 to 1000000, got 0
give_up = «-1                         | give_up: expected an integer from 1 to 1000000, got -1
give_up = «"never"                    | give_up: expected an integer from 1 to 1000000, got 'never'
rounds = «0; lr = 0; epoch = 1       | rounds: expected an integer from 1 to 1000000, got 0 (and 2 more)
""",
    "engine": """
«worker = 2                           | worker: unknown key; nearest: workers
«Workers = 2                          | Workers: unknown key; nearest: workers
«threads = 1                          | threads: unknown key
«checkpoint = 5                       | checkpoint: unknown key; nearest: checkpoint_every
«gpu = true                           | gpu: unknown key; this table has workers, device, checkpoint_every
workers = «0                          | workers: expected 'auto' or an integer from 1 to 1024, got 0
workers = «-1                         | workers: expected 'auto' or an integer from 1 to 1024, got -1
workers = «1025                       | workers: expected 'auto' or an integer from 1 to 1024, got 1025
workers = «2.0                        | workers: expected 'auto' or an integer from 1 to 1024, got 2.0
workers = «true                       | workers: expected 'auto' or an integer from 1 to 1024, got true
workers = «"2"                        | workers: expected 'auto' or an integer from 1 to 1024, got '2'
workers = «"Auto"                     | workers: expected 'auto' or an integer from 1 to 1024, got 'Auto'
workers = «[1, 2]                     | workers: expected 'auto' or an integer from 1 to 1024, got a list
device = «"gpu"                       | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «"CUDA"                      | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «"cuda:"                     | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «"cuda:one"                  | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «"cuda:1 "                   | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «"auto:0"                    | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «0                           | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
device = «["cuda:0", "cuda:1"]        | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one such as
checkpoint_every = «0                 | checkpoint_every: expected an integer from 1 to 1000000, got 0
checkpoint_every = «-5                | checkpoint_every: expected an integer from 1 to 1000000, got -5
checkpoint_every = «"5"               | checkpoint_every: expected an integer from 1 to 1000000, got '5'
checkpoint_every = «5.5               | checkpoint_every: expected an integer from 1 to 1000000, got 5.5
device = «1; checkpoint_every = 0; workers = 0 | device: expected one of auto, cpu, cuda, mps, xpu, or a numbered one
""",
    "report": """
«sample = false                       | sample: unknown key; nearest: samples
«Samples = false                      | Samples: unknown key; nearest: samples
«gallery = 24                         | gallery: unknown key; nearest: gallery_size
«title = "x"                          | title: unknown key; this table has samples, gallery_size
samples = «0                          | samples: expected true or false, got 0
samples = «24                         | samples: expected true or false, got 24
samples = «"false"                    | samples: expected true or false, got 'false'
samples = «[]                         | samples: expected true or false, got a list
samples = «{ show = false }           | samples: expected true or false, got a table
gallery_size = «0                     | gallery_size: expected an integer from 1 to 1000, got 0
gallery_size = «-24                   | gallery_size: expected an integer from 1 to 1000, got -24
gallery_size = «24.0                  | gallery_size: expected an integer from 1 to 1000, got 24.0
gallery_size = «1001                  | gallery_size: expected an integer from 1 to 1000, got 1001
gallery_size = «"24"                  | gallery_size: expected an integer from 1 to 1000, got '24'
gallery_size = «true                  | gallery_size: expected an integer from 1 to 1000, got true
gallery_size = «0; samples = 1        | gallery_size: expected an integer from 1 to 1000, got 0 (and 1 more)
""",
}
