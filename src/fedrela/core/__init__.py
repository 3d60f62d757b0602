"""The method itself: NumPy only, and independent of any federated algorithm.

Read `equations` for Section 4 of the paper, and `relabelling` for how they compose; `reallocators` has alternatives.
"""

from fedrela.core.candidates import Candidates
from fedrela.core.ledger import Ledger, Provenance, undo
from fedrela.core.previews import TAUS, Preview, preview
from fedrela.core.reallocators import REALLOCATORS, Reallocator
from fedrela.core.relabelling import Relabelling, relabel
from fedrela.core.schedule import Schedule

__all__ = [
    "REALLOCATORS", "TAUS", "Candidates", "Ledger", "Preview", "Provenance", "Reallocator", "Relabelling", "Schedule",
    "preview", "relabel", "undo",
]  # fmt: skip
