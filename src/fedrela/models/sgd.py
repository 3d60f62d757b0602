"""Stochastic gradient descent on one flat vector.

It is the only SGD in the package, since another order of operations changes the last bits. Every step gives the bits of
`torch.optim.SGD` with ``foreach=False`` over the separate parameters: g <- g + wd y; m <- rho m + g (first m = g);
y <- y - lr m. With momentum on a CPU torch's fused kernel does it in one pass, nearly three times as fast. That kernel
rounds the last, incomplete group of its SIMD lanes differently, so those few values take plain steps, unless the
vectors are followed by padding that completes the group.
"""

from __future__ import annotations

import torch
from torch import Tensor

from fedrela.arguments import check_number

LANES = 64  # a multiple of the number of values in any SIMD register


class Sgd:
    """Plain SGD with momentum and weight decay.

    Parameters
    ----------
    weights, gradient
        Vectors of one length, such as `FlatModel.weights` and `FlatModel.gradient`. `gradient` is read, not changed.
    lr
        May be changed before any step.
    momentum, weight_decay
        As in torch.
    padded
        The same two vectors with the zeros behind them, up to a multiple of `LANES`, if they have any.

    Examples
    --------
    >>> weights = torch.tensor([1.0, 2.0])
    >>> Sgd(weights, torch.tensor([1.0, -1.0]), lr=0.5).step()
    >>> weights.tolist()
    [0.5, 2.5]
    """

    def __init__(
        self,
        weights: Tensor,
        gradient: Tensor,
        *,
        lr: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        padded: tuple[Tensor, Tensor] | None = None,
    ) -> None:
        self.weights, self.gradient = weights, gradient
        self.lr = check_number("lr", lr, 0)
        self.momentum = check_number("momentum", momentum, 0, 1)
        self.weight_decay = check_number("weight_decay", weight_decay, 0)
        weights, gradient = padded or (weights, gradient)
        self.buffer = torch.zeros_like(weights) if momentum else None  # set by the first step
        fused = bool(momentum) and weights.device.type == "cpu" and hasattr(torch, "_fused_sgd_")
        cut = len(weights) - len(weights) % LANES if fused else 0
        vectors = [] if self.buffer is None else [weights, gradient, self.buffer]
        self._lanes = [vector[:cut] for vector in vectors if cut]
        self._rest = [vector[cut:] for vector in vectors if cut < len(weights)]
        self._first = True

    def restart(self) -> None:
        """Forget the momentum."""
        self._first = True

    def step(self) -> None:
        """Take one step."""
        if self.buffer is None:
            self.weights.add_(self._decayed(self.weights, self.gradient), alpha=-self.lr)
        if self._lanes:
            self._fused(*self._lanes)
        if self._rest:
            self._plain(*self._rest)
        self._first = False

    def _decayed(self, weights: Tensor, gradient: Tensor) -> Tensor:
        return gradient.add(weights, alpha=self.weight_decay) if self.weight_decay else gradient

    def _plain(self, weights: Tensor, gradient: Tensor, buffer: Tensor) -> None:
        direction = self._decayed(weights, gradient)
        if self._first:
            buffer.copy_(direction)
        else:
            buffer.mul_(self.momentum).add_(direction)
        weights.add_(buffer, alpha=-self.lr)

    def _fused(self, weights: Tensor, gradient: Tensor, buffer: Tensor) -> None:
        torch._fused_sgd_(
            [weights], [gradient], [buffer],
            weight_decay=self.weight_decay, momentum=self.momentum, lr=self.lr,
            dampening=0.0, nesterov=False, maximize=False, is_first_step=self._first,
        )  # fmt: skip
