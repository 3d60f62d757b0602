"""How far SGD goes: the length of a client's way in units of its gradient."""

from __future__ import annotations

from fedrela.errors import ArgumentError


def normalizer(steps: int, *, momentum: float = 0.0, lr: float | None = None, mu: float = 0.0) -> float:
    """Return a, the L1 norm of the vector that weighs a client's gradients in its way x - y = lr sum_k a_k g_k.

    With a constant gradient g of the loss the client moves by -lr a g. With momentum rho and a proximal term mu a step
    is m <- rho m + 1 - lr mu a, a <- a + m. In closed form, plain SGD: a = tau; momentum alone:
    a = [tau - rho (1 - rho^tau) / (1 - rho)] / (1 - rho); the proximal term alone: a = (1 - (1 - lr mu)^tau) / (lr mu).

    Parameters
    ----------
    steps
        tau, the number of local steps.
    momentum
        rho, from 0 up to but without 1.
    lr, mu
        Learning rate and weight of the proximal term; the rate is needed only where `mu` is not 0.

    Examples
    --------
    >>> [round(normalizer(tau, momentum=0.9), 6) for tau in (1, 3, 6, 12)]
    [1.0, 5.61, 17.82969, 55.418658]
    >>> round(normalizer(3, momentum=0.9, lr=0.05, mu=0.01), 3)
    5.608
    """
    if steps < 0 or not 0 <= momentum < 1 or not mu >= 0:
        raise ArgumentError(f"normalizer: steps {steps}, momentum {momentum} or mu {mu} is out of range")
    if mu and lr is None:
        raise ArgumentError("normalizer: the learning rate is needed where mu is not 0")
    m, a, pull = 0.0, 0.0, (lr or 0.0) * mu
    for _ in range(steps):
        m = momentum * m + 1 - pull * a
        a += m
    return a
