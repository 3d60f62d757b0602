"""Battery B17: configurations that are right in themselves, but not for their data; these fail when data are built.

One line a case, as in `wrong_files`: the pairs of a table, a ``«`` where the message must point (without one, at the
table), then its words from the table on. They are about the ten classes and 1,438 samples of the digits, or, in whole
files, about the files that `write_data` writes.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from helpers.layouts import DRESSES, LAYOUTS, place_of_mark

CASES = {
    "data.imbalance": """
kind = "step"; ratio = 2; minority = «[0, 12]   | .minority: expected different class ids from 0 to 9, got [0, 12]
kind = "step"; minority = «[10]; ratio = 2      | .minority: expected different class ids from 0 to 9, got [10]
kind = "step"; ratio = 2; order = «[1, 0]       | .order: expected each class id from 0 to 9 once, got [1, 0]
kind = "long_tail"; factor = 2; order = «[0]    | .order: expected each class id from 0 to 9 once, got [0]
order = «[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10]; kind = "long_tail"; factor = 2 | .order: expected each class id from 0 to 9
kind = "step"; ratio = 1e6                      | : class 5 would keep none of its 146 samples
kind = "long_tail"; factor = 2; largest = 5000  | : class 0 has 142 samples, but 5000 were requested; lower `largest`
""",
    "data.partition": """
clients = 10; alpha = 1; min_size = «500 | .min_size: 10 clients with 500 samples each need 5000, but there are only
clients = 200; alpha = 1                        | .min_size: 200 clients with 10 samples each need 2000
kind = "iid"; clients = «100000                 | .clients: 100000 clients with 1 samples each need 100000
kind = "iid"; min_size = «1000000000; clients = 1000000 | .min_size: 1000000 clients with 1000000000 samples each
kind = "shards"; clients = 4; classes_per_client = «2  | .classes_per_client: 4 clients with 2 classes each make 8
classes_per_client = «11; kind = "shards"; clients = 4 | .classes_per_client: 4 clients with 11 classes each make 44
kind = "natural"                                | : this source has no client ids, which kind 'natural' needs
kind = "natural"; clients = 3                   | : this source has no client ids, which kind 'natural' needs
""",
}

CSV = 'data.source = "csv"\n'
TABLE = CSV + 'data.root = "table.csv"\n[data.options]\n'
WHOLE = {
    "samples": (
        'data = { source = "gaussians", options.samples = «-5 }',
        "data.options.samples: ",
    ),
    "test samples": (
        'data.source = "gaussians"\n[data.options]\nclasses = 3\ndimension = 2\ntest_samples = «[1, 2]',
        "data.options.test_samples: ",
    ),
    "one class": ('data = { options.classes = «1, source = "gaussians" }', "data.options.classes: "),
    "no size": ('[data]\nsource = "image_folder"\noptions.size = «-1', "data.options.size: expected an integer "),
    "channels": ('[data]\nsource = "image_folder"\noptions = { channels = «2 }', "data.options.channels: expected 1"),
    "test share": (TABLE + "test_share = «1.5", "data.options.test_share: expected a number from 0 to 1"),
    "label": (TABLE + '# é\nlabel = «"lable"', "data.options.label: "),
    "label by position": (TABLE + "label = «9", "data.options.label: "),
    "client": (TABLE + 'label = "label"\nclient = «"hospitale"', "data.options.client: "),
    "ignore": (TABLE + 'ignore = «["a", "z"]', "data.options.ignore: "),
    "categories": (TABLE + 'categories = «["z"]', "data.options.categories: "),
    "missing": (TABLE + 'missing = «"omit"', "data.options.missing: expected one of error, drop, indicate"),
    "delimiter": (TABLE + 'delimiter = «";;"', "data.options.delimiter: expected one character"),
    "more clients than samples": (
        'data.source = "csv"\ndata.root = "table.csv"\ndata.options.client = "hospital"\n'
        '[data.partition]\nkind = "natural"\nclients = «999',
        "data.partition.clients: 999 clients need 999 samples, but there are only 32",
    ),
    "layout": (
        '[data]\nsource = "npz"\nroot = "own.npz"\noptions = { layout = «"chw" }',
        "data.options.layout: expected one of auto, nchw, nhwc, got 'chw'",
    ),
    "no such table": (CSV + 'data.root = «"none.csv"', "data.root: csv: "),
    "no such download": ('[data]\nroot = «"nowhere"\nsource = "cifar10"', "data.root: cifar10: no binary edition in "),
    "no root": ("«[data]\nsource = 'csv'", "data.root: expected the file with the table"),
    "no default folder": ("[data]\nsource = «'cifar10'", "data.source: cifar10: no binary edition in data"),
    "a damaged table": (CSV + 'data.root = «"damaged.csv"', "data.root: "),
}  # fmt: skip
DATA_ERRORS = ("would keep", "has 142 samples", "no client ids", "none.csv", "no binary", "damaged.csv")


def write_data(folder: Path) -> None:
    """Write a table with 40 rows and a natural client, a damaged one, and 40 images as arrays."""
    rows = [f"{i % 7},{i * 0.5},{'ab'[i % 2]},{'xyz'[i % 3]}" for i in range(40)]
    (folder / "table.csv").write_text("\n".join(["a,b,label,hospital", *rows]))
    (folder / "damaged.csv").write_text("a,label\n1,x\n2\n")
    y = np.arange(40) % 2
    x = np.zeros((40, 4, 4, 3), np.uint8)
    np.savez(folder / "own.npz", x_train=x, y_train=y, x_test=x, y_test=y)


def all_files() -> dict[str, tuple[str, int, int, str]]:
    """Return every file: its text, line, column, and how the words begin."""
    files = {name: (*place_of_mark(text), words) for name, (text, words) in WHOLE.items()}
    for table, lines in CASES.items():
        for line in lines.strip().splitlines():
            pairs, words = line.rsplit(" | ", 1)
            for layout, dress in zip(LAYOUTS, DRESSES, strict=True):
                text = DRESSES[dress](LAYOUTS[layout](table, [pair.strip() for pair in pairs.split("; ")]))
                files[f"{table}: {pairs.strip()} / {layout}"] = (*place_of_mark(text), table + words)
    return files
