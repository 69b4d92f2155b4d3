"""Models of chunks for the workers of other processes, which import this file: quick to import."""

import logging
import os
import sys
import warnings

import numpy as np

__all__ = ["MARK", "Predicting", "always_no", "fails_late", "leaves", "quotes", "talks"]

MARK = 271828.1828459045


def always_no(X):
    """The same for every row."""
    return np.full(len(X), "no")


class Predicting:
    """A model of a function of a chunk."""

    def __init__(self, function):
        self.function = function

    def predict(self, X):
        return self.function(X)


def fails_late(X):
    """A model that predicts until it sees the last rows, and then quotes them."""
    if len(X) and X["a"].iloc[-1] == MARK:
        raise ValueError(f"a private word: {X['a'].iloc[-1]} in {X!r}")
    return np.full(len(X), "no")


def talks(X):
    """A model that says what it sees."""
    words = f"a private word: {X['a'].iloc[-1]}"
    print(words)  # noqa: T201 - this is what it does
    print(words, file=sys.stderr)  # noqa: T201
    warnings.warn(words, UserWarning, stacklevel=1)
    logging.getLogger("model").warning(words)
    return np.full(len(X), "no")


def quotes(X):
    """A model that quotes each chunk."""
    raise ValueError(f"a private word: {X!r}")


def leaves(X):
    """A model that ends its worker."""
    os._exit(7)
