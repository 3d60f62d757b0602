"""Battery B17: wrong configuration files, with the place and the words that each must get.

One line a case: the pairs of a table, a ``«`` where the message must point, then its words from the key on. Without a
``«`` a key is missing, and the message points at the table. Each case is written in three layouts and three dresses.
"""

from __future__ import annotations

from helpers import wrong_comparing, wrong_data, wrong_relabelling, wrong_sweeps, wrong_training
from helpers.layouts import DRESSES, LAYOUTS, place_of_mark
from helpers.wrong_whole import WHOLE

CASES = wrong_data.CASES | wrong_training.CASES | wrong_relabelling.CASES | wrong_comparing.CASES
WHOLE_FILES = WHOLE | wrong_comparing.WHOLE | wrong_sweeps.WHOLE
Wrong = tuple[str, int, int, str]  # text, line, column, and how the words begin


def all_files() -> dict[str, list[Wrong]]:
    """Return every case with the files that it is written as."""
    files = {name: [(*place_of_mark(text), words)] for name, (text, words) in WHOLE_FILES.items()}
    for table, lines in CASES.items():
        for line in lines.strip().splitlines():
            pairs, words = line.rsplit(" | ", 1)
            texts = [write(table, [pair.strip() for pair in pairs.split("; ")]) for write in LAYOUTS.values()]
            dressed = [place_of_mark(put_on(text)) for text in texts for put_on in DRESSES.values()]
            name = f"{table}: {pairs.strip()}"
            assert name not in files, name
            files[name] = [(*place, f"{table}.{words}") for place in dressed]
    return files
