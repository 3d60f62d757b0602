"""FedAvg: average what the clients learnt, each by its number of samples.

McMahan et al., Communication-efficient learning of deep networks from decentralized data, AISTATS 2017.

    y_i <- SGD on client i's loss from x
    x   <- sum_i (n_i / n) y_i                    over the clients of the round

What leaves the client: weights, number of samples.
"""

from __future__ import annotations

from fedrela.algorithms.base import Algorithm


class FedAvg(Algorithm):
    """The reference: every slot of the contract as it is by default."""

    name = "fedavg"
    paper = "McMahan et al., 2017"
    uploads = ("weights",)
