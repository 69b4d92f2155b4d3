"""Halts in the workers of `multiprocessing.pool`, which take an `Exception` and nothing else to whoever waits.

A halt is no `Exception`, so that no loop swallows it. A worker of a pool dies of what is none: its task would be lost,
and whoever waits for the task would wait for ever. Whatever leaves a task has every loop inside it behind it, so
there, and only there, halts are taken to be what a worker carries.
"""

from __future__ import annotations

import sys

from reusable_holdout.errors import Halted, Refused

__all__ = ["let_pools_carry_halts"]

_POOLS = (
    "multiprocessing.pool",
    "multiprocess.pool",
    "billiard.pool",
)  # the standard library's, and its forks


def let_pools_carry_halts() -> None:
    """Make the workers of this process's pools, if there are any, hand on a halt as they hand on exceptions.

    A worker says ``except Exception``, where the name is looked up in its module at the time: that module gets a
    name `Exception` of its own, which stands for the builtin and for what this library raises outside of it.
    """
    for name in _POOLS:
        module = sys.modules.get(name)
        if module is not None:
            vars(module)["Exception"] = (Exception, Halted, Refused)
