"""Battery B17: wrong configuration files, with the place and the words that each must get.

One line a case: the pairs of a table, a ``«`` where the message must point, then its words from the key on. Without a
``«`` a key is missing, and the message points at the table. Each case is written in three layouts and three dresses.
"""

from __future__ import annotations

from experiment.layouts import DRESSES, LAYOUTS, place_of_mark

CASES = {
    "data": """
«sorce = "digits"                     | sorce: unknown key; nearest: source
«Source = "digits"                    | Source: unknown key; nearest: source
«q = 1                                | q: unknown key; this table has source, root, options, imbalance,
«seed = 1                             | seed: unknown key
«alpha = 0.3                          | alpha: unknown key
«"a b" = 1                            | "a b": unknown key
source = «"digit"                     | source: one of cifar10, cifar100, csv, digits,
source = «"DIGITS"                    | source: one of cifar10
source = «3                           | source: one of cifar10
source = «["digits"]                  | source: one of cifar10
source = «true                        | source: one of cifar10
root = «7                             | root: a path is needed, got 7
root = «""                            | root: a path of at least one character
root = «"a\\u0000b"                   | root: a path of at least one character and without control characters
root = «["data"]                      | root: a path is needed, got a list
validation = «1.0                     | validation: a number from 0 to below 1 is needed, got 1.0
validation = «-0.1                    | validation: a number from 0 to below 1 is needed, got -0.1
validation = «20                      | validation: a number from 0 to below 1 is needed, got 20
validation = «"0.2"                   | validation: a number from 0 to below 1 is needed, got '0.2'
validation = «false                   | validation: a number from 0 to below 1 is needed, got false
validation = «nan                     | validation: a number from 0 to below 1 is needed, got nan
standardize = «"global"               | standardize: one of pooled, local, none is needed, got 'global'
standardize = «false                  | standardize: one of pooled, local, none is needed, got false
protocol = «"fedlog"                  | protocol: one of counts, fedloge, fedrela-release is needed, got 'fedlog'
protocol = «"fedloge"; imbalance = { kind = "step", ratio = 2 } | protocol: with minority classes there is none
imbalance.ratio = 2; protocol = «"fedrela-release"; imbalance.kind = "step" | protocol: with minority classes there
imbalance = «"step"                   | imbalance: a table is needed, got 'step'
imbalance = «[{ kind = "natural" }]   | imbalance: a table is needed, got a list
partition = «10                       | partition: a table is needed, got 10
options = «1979-05-27                 | options: a table is needed, got a date or time
source = "csv"; «file = "x.csv"       | file: unknown key
source = «"csvv"; validation = 9      | source: one of cifar10, cifar100, csv, digits, fashion_mnist, gaussians, i
validation = «9; source = "csvv"      | validation: a number from 0 to below 1 is needed, got 9 (and 1 more)
""",
    "data.options": """
«sise = 3                             | sise: unknown option; source 'digits' has none
«seed = 1; x = 2                      | seed: unknown option; source 'digits' has none (and 1 more)
sise = «{}; x = 2                     | sise: text, a finite number, true or false, or a list of these is
""",
    "data.imbalance": """
kind = «"stepp"                       | kind: one of natural, step, long_tail is needed, got 'stepp'; nearest: step
kind = «1                             | kind: one of natural, step, long_tail is needed, got 1
kind = "step"                         | ratio: a number of at least 1 is missing; kind 'step' needs it
kind = "long_tail"; largest = 50      | factor: a number of at least 1 is missing; kind 'long_tail' needs it
kind = "step"; ratio = «0.5           | ratio: a number of at least 1 is needed, got 0.5
kind = "step"; ratio = «-20           | ratio: a number of at least 1 is needed, got -20
kind = "step"; ratio = «inf           | ratio: a number of at least 1 is needed, got inf
kind = "step"; ratio = «true          | ratio: a number of at least 1 is needed, got true
kind = "step"; ratio = «"20"          | ratio: a number of at least 1 is needed, got '20'
kind = "step"; «ration = 20           | ration: unknown key; nearest: ratio
kind = "step"; «factor = 9; ratio = 2 | factor: kind 'step' does not use it; leave it out
«ratio = 20                           | ratio: kind 'natural' does not use it; leave it out
«side = "last"; kind = "natural"      | side: kind 'natural' does not use it; leave it out
kind = "long_tail"; «minority = 0.5; factor = 9 | minority: kind 'long_tail' does not use it
kind = "long_tail"; factor = «0       | factor: a number of at least 1 is needed, got 0
kind = "long_tail"; factor = 9; largest = «0   | largest: a whole number from 1 to 1000000000 is needed, got 0
kind = "long_tail"; factor = 9; largest = «5.0 | largest: a whole number from 1 to 1000000000 is needed, got 5.0
kind = "long_tail"; factor = 9; largest = «1000000001 | largest: a whole number from 1 to 1000000000 is needed
kind = "step"; ratio = 2; minority = «1.5      | minority: a list of class ids, or a share from 0 to 1, is
kind = "step"; ratio = 2; minority = «3        | minority: a list of class ids, or a share from 0 to 1, is
kind = "step"; ratio = 2; minority = «"last"   | minority: a list of class ids, or a share from 0 to 1, is
kind = "step"; ratio = 2; minority = [0, «-1]  | minority[1]: a class id of at least 0 is needed, got -1
kind = "step"; ratio = 2; minority = [«0.5, 1] | minority[0]: a class id of at least 0 is needed, got 0.5
kind = "step"; ratio = 2; minority = [1, 2, «"3"] | minority[2]: a class id of at least 0 is needed, got '3'
kind = "step"; ratio = 2; minority = «[1, 1]   | minority: different class ids
kind = "step"; ratio = 2; side = «"left"       | side: one of last, first is needed, got 'left'
kind = "step"; ratio = 2; side = «"first"; minority = [1] | side: only a share of the classes has one
kind = "step"; ratio = 2; order = «"sorted"    | order: one of natural, random, or a list of class ids, is
kind = "step"; ratio = 2; order = «[0, 2]      | order: each class id from 0 to 1 once is needed
kind = "step"; ratio = 2; order = [«true, 0]   | order[0]: a class id of at least 0 is needed, got true
""",
    "data.partition": """
kind = "dirichlet"; alpha = 0.3       | clients: a whole number from 1 to 1000000 is missing; kind 'dirichlet'
clients = 10                          | alpha: a number from 0.01 to 1e+06 is missing; kind 'dirichlet'
kind = "iid"                          | clients: a whole number from 1 to 1000000 is missing; kind 'iid' needs it
kind = "shards"; clients = 4          | classes_per_client: a whole number from 1 to 1000000000 is missing
kind = «"dirichlett"; clients = 4     | kind: one of dirichlet, iid, natural, shards is needed, got 'dirich
kind = «["iid"]; clients = 4          | kind: one of dirichlet, iid, natural, shards is needed, got a list
clients = 10; «alpah = 0.3            | alpah: unknown key; nearest: alpha
«client = 10; alpha = 0.3             | client: unknown key; nearest: clients
clients = «0; alpha = 0.3             | clients: a whole number from 1 to 1000000 is needed, got 0
clients = «10.0; alpha = 0.3          | clients: a whole number from 1 to 1000000 is needed, got 10.0
clients = «true; alpha = 0.3          | clients: a whole number from 1 to 1000000 is needed, got true
clients = «99999999999999999999; alpha = 1 | clients: a number of at most 64 bits is needed
clients = «1000001; alpha = 1         | clients: a whole number from 1 to 1000000 is needed, got 1000001
clients = «1000000000000; alpha = 1; min_size = 0 | clients: a whole number from 1 to 1000000 is needed
clients = 1; alpha = 1; min_size = «1000000001 | min_size: a whole number from 0 to 1000000000 is needed
kind = "shards"; clients = 1; classes_per_client = «1000000001 | classes_per_client: a whole number from 1 to 1
clients = 10; alpha = «0              | alpha: a number from 0.01 to 1e+06 is needed, got 0
clients = 10; alpha = «1e7            | alpha: a number from 0.01 to 1e+06 is needed, got 10000000.0
clients = 10; alpha = «"0.3"          | alpha: a number from 0.01 to 1e+06 is needed, got '0.3'
clients = 10; alpha = «[0.3]          | alpha: a number from 0.01 to 1e+06 is needed, got a list
clients = 10; alpha = 1; scheme = «"even"   | scheme: one of proportional, multinomial, niid_bench, equal is
clients = 10; alpha = 1; min_size = «-1     | min_size: a whole number from 0 to 1000000000 is needed, got -1
clients = 10; alpha = 1; numpy_seed = «4294967296 | numpy_seed: a whole number from 0 to 4294967295 is
clients = 10; alpha = 1; numpy_seed = 1; min_size = «5 | min_size: numpy_seed follows the official code
clients = 10; alpha = 1; «classes_per_client = 2 | classes_per_client: kind 'dirichlet' does not use it
kind = "iid"; clients = 4; «alpha = 0.3     | alpha: kind 'iid' does not use it; leave it out
kind = "natural"; «min_size = 10            | min_size: kind 'natural' does not use it; leave it out
kind = "shards"; clients = 4; classes_per_client = «0 | classes_per_client: a whole number from 1 to 1000000000
kind = "shards"; «scheme = "equal"; clients = 4; classes_per_client = 2 | scheme: kind 'shards' does not
""",
}

# whole files; syntax errors keep the place that tomllib gives
WHOLE = {
    "seed": ("seed = «-1", "seed: a whole number from 0 to 9223372036854775807 is needed, got -1"),
    "seed of 64 bits": ("seed = «9223372036854775808", "seed: a number of at most 64 bits is needed"),
    "seed as text": ("\n\nseed = «'1'", "seed: a whole number from 0 to 9223372036854775807 is needed, got '1'"),
    "seed as truth": ("seed = «true", "seed: a whole number from 0 to 9223372036854775807 is needed, got true"),
    "unknown table": ("[model]\n[«dota]\n", "dota: unknown key; nearest: data"),
    "unknown table inside": ("[data.«imbalanc.x]\n", "data.imbalanc: unknown key; nearest: imbalance"),
    "unknown array of tables": ("[[«trian]]\n[[trian]]\n", "trian: unknown key; nearest: train"),
    "a table as value": ("data = «3", "data: a table is needed, got 3"),
    "an array of tables": ("seed = 2\n«[[data]]\n[[data]]\n", "data: a table is needed, got a list"),
    "a header for a word": ("«[data.source]\n", "data.source: one of cifar10"),
    "a header for a number": (
        "[data]\n  «[data.validation]",
        "data.validation: a number from 0 to below 1 is needed, got a",
    ),
    "a later table as value": ("model = «'mlp'", "model: a table is needed, got 'mlp'"),
    "an empty partition": (
        "[data]\npartition = «{}",
        "data.partition.clients: a whole number from 1 to 1000000 is missing",
    ),
    "option of another source": (
        'data.source = "csv"\n[data.options]\nlabel = "y"\n«lable = "y"',
        "data.options.lable: unknown option; nearest: label",
    ),
    "option that is a table": (
        'data.source = "csv"\n[data.options]\nlabel = «{ a = 1 }',
        "data.options.label: text, a finite number, true or false",
    ),
    "option that is a list of lists": (
        'data.source = "csv"\n[data.options]\nignore = ["a",\n  «["b"]]',
        "data.options.ignore[1]: text, a finite number,",
    ),
    "option that is not finite": (
        'data = { source = "gaussians", options.separation = «nan }',
        "data.options.separation: ",
    ),
    "option of another type": (
        'data.source = "csv"\n[data.options]\nheader = «1',
        "data.options.header: true or false is needed, got 1",
    ),
    "option as text": (
        'data = { source = "gaussians", options.samples = «"9" }',
        "data.options.samples: a whole number or a list, each item a whole number, is needed, got '9'",
    ),
    "option with a wrong item": (
        'data.source = "csv"\ndata.options.ignore = «["a", 1.5]',
        "data.options.ignore: a list, each item text or a whole number, is needed, got a list",
    ),
    "option truth for number": (
        'data = { source = "csv", options.test_share = «true }',
        "data.options.test_share: a number is",
    ),
    "two options": (
        'data.source = "csv"\n[data.options]\nseed = «"a"\nfiel = 3',
        "data.options.seed: a whole number is needed, got 'a' (and 1 more)",
    ),
    "three at once": ("[data]\n«b = 1\na = 1\n[data.partition]\nclients = 0", "data.b: unknown key;"),
    "the schema's order is not the file's": (
        "[data.partition]\nalpha = «0\n[data.imbalance]\nkind = 3\n",
        "data.partition.alpha: a number from 0.01",
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
    "no equals sign": ("seed «1\n", "seed: '=' is needed after a key"),
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
        "data.partition: a key is needed here; an inline table stands on one line",
    ),
    "text not closed": (
        "[data]\nsource = \"digits«\nroot = 'x'\n",
        "data.source: the quotes are not closed on this line",
    ),
    "long text not closed": (
        '[data]\nsource = """digits\n\nroot =«\n\n',
        "data.source: the text ends before this is complete",
    ),
    "wrong escape": ('[data]\nroot = "C:\\d«ata"\n', "data.root: a backslash in text is written twice"),
    "Windows path": ('[data]\nroot = "C:\\U«sers"\n', "data.root: a backslash in text is written twice"),
    "wrong escape in a key": ('seed = 1\n"a\\q«" = 1\n', "a backslash in text is written twice"),
    "no statement": ("seed = 1\n«!!\n", "not TOML; a key, a [table] or a # comment is needed"),
    "JSON": ('«{"seed": 1}', "not TOML; a key, a [table] or a # comment is needed"),
    "YAML": ("data«:\n  source: digits\n", "data: '=' is needed after a key"),
    "NUL": ("seed = «\0", "seed: not a TOML value"),
    "control character": ("# a comment «\x07\n", "found invalid character '\\x07'"),
    "impossible date": ("[model]\nx = «1979-02-30\n", "model.x: invalid date or datetime"),
    "lone carriage return": ("seed = 1«\rseed = 2\n", "seed: more text after"),
    "deep key": ("data." + "a." * 31 + "«a = 1", "a key of more than 32 parts"),
    "deep array": ("a = " + "[" * 32 + "«" + "[" * 5000, "nested more than 32 deep"),
    "long number": ("seed = «" + "1" * 5000, "a number or date of more than 200 characters"),
}


def all_files() -> dict[str, tuple[str, int, int, str]]:
    """Return every wrong file: its text, line, column, and how the words begin."""
    files = {name: (*place_of_mark(text), words) for name, (text, words) in WHOLE.items()}
    for table, lines in CASES.items():
        for line in lines.strip().splitlines():
            pairs, words = line.rsplit(" | ", 1)
            for layout, write in LAYOUTS.items():
                text = write(table, [pair.strip() for pair in pairs.split("; ")])
                for dress, put_on in DRESSES.items():
                    place = place_of_mark(put_on(text))
                    files[f"{table}: {pairs.strip()} / {layout} / {dress}"] = (*place, f"{table}.{words}")
    return files
