"""The method itself: NumPy only, no knowledge of any federated algorithm.

Read `reallocator` for the paper's equations, `relabelling` for how they compose.
"""

from fedrela.core.forecast import TAUS, Preview, preview
from fedrela.core.ledger import Ledger, undo
from fedrela.core.relabeler import Relabeler
from fedrela.core.relabelling import Relabelling, relabel
from fedrela.core.schedule import Schedule

__all__ = ["TAUS", "Ledger", "Preview", "Relabeler", "Relabelling", "Schedule", "preview", "relabel", "undo"]
