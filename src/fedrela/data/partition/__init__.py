"""Client heterogeneity: which client gets which samples.

Every function returns one sorted int64 index array a client; together they hold every sample exactly once.
"""

from fedrela.data.partition.by_chance import hold_out, iid
from fedrela.data.partition.by_client import natural
from fedrela.data.partition.by_dirichlet import dirichlet, dirichlet_partition
from fedrela.data.partition.by_shards import shards
from fedrela.data.partition.record import Partition

__all__ = ["Partition", "dirichlet", "dirichlet_partition", "hold_out", "iid", "natural", "shards"]
