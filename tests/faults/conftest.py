"""One thread, as in every process that trains."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
