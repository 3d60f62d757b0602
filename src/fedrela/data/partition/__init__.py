"""Client heterogeneity: which client gets which samples.

Every function returns one sorted int64 index array per client; together they contain every sample exactly once.
"""

from fedrela.data.partition.basic import Partition, hold_out, iid, natural, shards
from fedrela.data.partition.by_dirichlet import dirichlet
from fedrela.data.partition.plan import PartitionPlan

__all__ = ["Partition", "PartitionPlan", "dirichlet", "hold_out", "iid", "natural", "shards"]
