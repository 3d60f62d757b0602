"""What the commands of how-to/audit.md take as given: a model's posteriors with ids and labels, and pictures."""

import csv
from pathlib import Path

import numpy as np
from PIL import Image

rng = np.random.default_rng(0)
labels = np.repeat([0, 1], [160, 40])
ill = np.clip(0.15 + 0.6 * labels + 0.1 * rng.standard_normal(200), 0.01, 0.99).round(4)
with Path("clinic.csv").open("w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["patient", "healthy", "disease", "label"])
    for number, (share, label) in enumerate(zip(ill, labels, strict=True)):
        rows.writerow([f"p{number}", round(1 - share, 4), share, ("healthy", "disease")[label]])
Path("scans").mkdir()
for number in range(200):
    Image.new("L", (8, 8), number).save(f"scans/p{number}.png")
