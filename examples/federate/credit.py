"""Write the table of credit-card clients as the customers of three banks.

python credit.py UCI_Credit_Card.csv banks.csv

The data set is "default of credit card clients" of the UCI repository (30,000 rows); it is not shipped here. Each
customer goes to a bank by the amount of the credit, LIMIT_BAL, so that the banks differ as real ones do.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

LABELS = ("default.payment.next.month", "default payment next month", "default")
LIMITS = {"small": 80_000, "medium": 200_000}  # the largest credits of a bank; all others are large


def bank_of(limit: float) -> str:
    """Return the bank that lends such an amount.

    >>> bank_of(50_000), bank_of(500_000)
    ('small', 'large')
    """
    return next((name for name, most in LIMITS.items() if limit <= most), "large")


def convert(source: Path, target: Path) -> None:
    """Read the table, and write it with the columns ``bank`` and ``default``."""
    with source.open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    label = next(name for name in LABELS if name in rows[0])
    features = [name for name in rows[0] if name != label]
    with target.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*features, "bank", "default"])
        for row in rows:
            writer.writerow([*(row[name] for name in features), bank_of(float(row["LIMIT_BAL"])), row[label]])


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
