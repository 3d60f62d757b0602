"""The method itself: NumPy only, no knowledge of any federated algorithm.

Read `equations` for Section 4 of the paper, and `relabelling` for how they compose.
"""

from fedrela.core.ledger import Ledger, undo
from fedrela.core.previews import TAUS, Preview, preview
from fedrela.core.relabelling import Relabelling, relabel
from fedrela.core.schedule import Schedule

__all__ = ["TAUS", "Ledger", "Preview", "Relabelling", "Schedule", "preview", "relabel", "undo"]
