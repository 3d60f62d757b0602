"""The run folder: everything a run leaves on disk, and its one reader and writer."""

from fedrela.runfolder.checkpoints import Checkpoint
from fedrela.runfolder.folder import RunFolder, RunStatus

__all__ = ["Checkpoint", "RunFolder", "RunStatus"]
