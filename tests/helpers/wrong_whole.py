"""Battery B17: wrong files given in full, with a ``«`` where the message must point, and its words."""

from __future__ import annotations

# whole files; syntax errors keep the place that tomllib gives
WHOLE = {
    "seed": ("seed = «-1", "seed: expected an integer from 0 to 9223372036854775807, got -1"),
    "seed of 64 bits": ("seed = «9223372036854775808", "seed: expected a number of at most 64 bits"),
    "seed as text": ("\n\nseed = «'1'", "seed: expected an integer from 0 to 9223372036854775807, got '1'"),
    "seed as truth": ("seed = «true", "seed: expected an integer from 0 to 9223372036854775807, got true"),
    "unknown table": ("[sweep]\n[«dota]\n", "dota: unknown key; nearest: data"),
    "unknown table inside": ("[data.«imbalanc.x]\n", "data.imbalanc: unknown key; nearest: imbalance"),
    "unknown array of tables": ("[[«trian]]\n[[trian]]\n", "trian: unknown key; nearest: train"),
    "a table as value": ("data = «3", "data: expected a table, got 3"),
    "an array of tables": ("seed = 2\n«[[data]]\n[[data]]\n", "data: expected a table, got a list"),
    "a header for a word": ("«[data.source]\n", "data.source: expected one of cifar10"),
    "a header for a number": (
        "[data]\n  «[data.validation]",
        "data.validation: expected a number >= 0 and < 1, got a",
    ),
    "a model as value": ("model = «'mlp'", "model: expected a table, got 'mlp'"),
    "an algorithm as value": ("seed = 1\nalgorithm = «'fedavg'", "algorithm: expected a table, got 'fedavg'"),
    "rounds as value": ("train = «60", "train: expected a table, got 60"),
    "re-labelling as truth": ("relabel = «false", "relabel: expected a table, got false"),
    "re-labelling as array": ("«[[relabel]]\ntau = 0.1", "relabel: expected a table, got a list"),
    "engine as text": ("engine = «'flower'", "engine: expected a table, got 'flower'"),
    "report as number": ("report = «0", "report: expected a table, got 0"),
    "comparison as list": ("compare = «[1, 2]", "compare: expected a table, got a list"),
    "sweep as number": ("sweep = «3", "sweep: expected a table, got 3"),
    "a header for a loss": ("[train]\n«[train.loss]\nname = 'focal'", "train.loss: expected one of balanced_softmax"),
    "a header for hidden": ("«[model.hidden]\nlayers = 2", "model.hidden: expected a list of integers, one per layer,"),
    "fewer clients than the quorum": (
        "[train]\nmin_clients = «6\n[data]\npartition = { kind = 'iid', clients = 5 }",
        "train.min_clients: expected at most 5, the number of clients in a round, got 6",
    ),
    "quorum and share": (
        "data.partition = { kind = 'iid', clients = 200 }\n[train]\nparticipation = 0.1\nmin_clients = «21",
        "train.min_clients: expected at most 20, the number of clients in a round, got 21",
    ),
    "a client that is not there": (
        "data.partition = { kind = 'iid', clients = 2 }\n[relabel.tau]\n1 = 0.1\n«2 = 0.1",
        "relabel.tau.2: expected a client id from 0 to 1",
    ),
    "start after the end": (
        "[train]\nrounds = 40\n\n[relabel]\nstart = «48\n",
        "relabel.start: expected a round up to the last one, 40, got 48",
    ),
    "start after the end, the other way round": (
        "relabel.start = «48\ntrain.rounds = 47\n",
        "relabel.start: expected a round up to the last one, 47, got 48",
    ),
    "rounds too few for client and start": (
        "[relabel]\nstart = «9\ntau = { 12 = 0.1 }\n[train]\nrounds = 8\n",
        "relabel.start: expected a round up to the last one, 8, got 9 (and 1 more)",
    ),
    "keys of other tables": ("[relabel]\n«rounds = 3\n[train]\ntau = 0.1\n", "relabel.rounds: unknown key"),
    "per cent in a sub-table": (
        "[relabel]\npreset = 'official'\n[relabel.tau]\n'0' = 0.05\n'1' = «5\n",
        "relabel.tau.1: expected a fraction from 0 to 1, got 5; the official code counts in per cent: 5 there is 0.05",
    ),
    "a dotted client id": (
        "[relabel]\ntau.«1.5 = 0.1\n",
        "relabel.tau.1: expected a fraction from 0 to 1, got a table",
    ),
    "algorithm and model at once": (
        "[algorithm]\nname = 'fedprox'\n«nu = 1\n[model]\nname = 'resnet8'\nwidht = 3\n",
        "algorithm.nu: unknown key; nearest: mu (and 1 more)",
    ),
    "an empty partition": (
        "[data]\npartition = «{}",
        "data.partition.clients: an integer from 1 to 1000000 is missing",
    ),
    "option of another source": (
        'data.source = "csv"\n[data.options]\nlabel = "y"\n«lable = "y"',
        "data.options.lable: unknown key; nearest: label",
    ),
    "option that is a table": (
        'data.source = "csv"\n[data.options]\nlabel = «{ a = 1 }',
        "data.options.label: expected a string or an integer, got a table",
    ),
    "option that is a list of lists": (
        'data.source = "csv"\n[data.options]\nignore = «["a",\n  ["b"]]',
        "data.options.ignore: expected a list, each item a string or an integer, got a list",
    ),
    "option that is not finite": (
        'data = { source = "gaussians", options.separation = «nan }',
        "data.options.separation: ",
    ),
    "option of another type": (
        'data.source = "csv"\n[data.options]\nheader = «1',
        "data.options.header: expected true or false, got 1",
    ),
    "option as text": (
        'data = { source = "gaussians", options.samples = «"9" }',
        "data.options.samples: expected an integer or a list, each item an integer, got '9'",
    ),
    "option with a wrong item": (
        'data.source = "csv"\ndata.options.ignore = «["a", 1.5]',
        "data.options.ignore: expected a list, each item a string or an integer, got a list",
    ),
    "option truth for number": (
        'data = { source = "csv", options.test_share = «true }',
        "data.options.test_share: expected a number",
    ),
    "two options": (
        'data.source = "csv"\n[data.options]\nseed = «"a"\nfiel = 3',
        "data.options.seed: expected an integer, got 'a' (and 1 more)",
    ),
    "three at once": ("[data]\n«b = 1\na = 1\n[data.partition]\nclients = 0", "data.b: unknown key;"),
    "the schema's order is not the file's": (
        "[data.partition]\nalpha = «0\n[data.imbalance]\nkind = 3\n",
        "data.partition.alpha: expected a number from 0.01",
    ),
    "an escaped name": ('"\\u001b[31m" = 1'.replace('"', '«"', 1), '"\\u001B[31m": unknown key'),
    "twice": ("seed = 1\nseed = 2«\n", "seed: given twice"),
    "twice at the end": ("seed = 1\nseed = 2«", "seed: given twice"),
    "twice in a table": ("[data]\nsource = 'csv'\nroot = 'x'\nsource = 'npz'« # again\n", "data.source: given twice"),
    "table twice": ("[data]\nroot = 'x'\n[data«]\n", "data: given twice"),
    "twice in an inline table": ("data = { root = 'a', root = 'b'« }\n", "data: a key in it is given twice"),
    "key and table": ("data.root = 'x'\n[data«]\n", "data: given twice"),
    "inline table continued": (
        "[data]\nimbalance = {kind='step'}\nimbalance.ratio = 2«\n",
        "data.imbalance.ratio: an inline table ends",
    ),
    "no quotes": ("[data]\nsource = «digits\n", "data.source: not a TOML value; text needs quotes"),
    "Python's truth": ("[relabel]\nenabled = «True\n", "relabel.enabled: not a TOML value; text needs quotes"),
    "no value": ("seed = «\n", "seed: not a TOML value"),
    "no equals sign": ("seed «1\n", "seed: expected '=' after a key"),
    "two values": ("seed = 1 «2\n", "seed: more text after a complete statement"),
    "a comma": ("seed = 1«,\n", "seed: more text after a complete statement"),
    "number with a point": ("[data]\nvalidation = 0«.\n", "data.validation: more text after a complete statement"),
    "header not closed": ("[data«\nroot = 'x'\n", "data: expected ']' at the end of a table declaration"),
    "array header not closed": ("[[data«]\n", "data: expected ']]' at the end of an array declaration"),
    "array not closed": ("[data]\nimbalance = { minority = [1, 2 «}\n", "data.imbalance: unclosed array"),
    "array to the end": (
        "[data]\nimbalance.minority = [1,\n2,« \n\n",
        "data.imbalance.minority: the text ends before this",
    ),
    "inline table over lines": (
        "[data]\npartition = { «\n kind = 'iid' }\n",
        "data.partition: expected a key here; an inline table is on one line",
    ),
    "text not closed": (
        "[data]\nsource = \"digits«\nroot = 'x'\n",
        "data.source: the quotes are not closed on this line",
    ),
    "long text not closed": (
        '[data]\nsource = """digits\n\nroot =«\n\n',
        "data.source: the text ends before this is complete",
    ),
    "wrong escape": ('[data]\nroot = "C:\\d«ata"\n', "data.root: write a backslash twice"),
    "Windows path": ('[data]\nroot = "C:\\U«sers"\n', "data.root: write a backslash twice"),
    "wrong escape in a key": ('seed = 1\n"a\\q«" = 1\n', "write a backslash twice"),
    "no statement": ("seed = 1\n«!!\n", "not TOML; expected a key, a [table] or a # comment"),
    "JSON": ('«{"seed": 1}', "not TOML; expected a key, a [table] or a # comment"),
    "YAML": ("data«:\n  source: digits\n", "data: expected '=' after a key"),
    "NUL": ("seed = «\0", "seed: not a TOML value"),
    "control character": ("# a comment «\x07\n", "found invalid character '\\x07'"),
    "impossible date": ("[sweep]\nx = «1979-02-30\n", "sweep.x: invalid date or datetime"),
    "lone carriage return": ("seed = 1«\rseed = 2\n", "seed: more text after"),
    "deep key": ("data." + "a." * 31 + "«a = 1", "a key of more than 32 parts"),
    "deep array": ("a = " + "[" * 32 + "«" + "[" * 5000, "nested more than 32 deep"),
    "long number": ("seed = «" + "1" * 5000, "a number or date of more than 200 characters"),
}
