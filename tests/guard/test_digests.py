"""What the digests of a holdout tell apart; that they are the same for chunks of any size is in test_large_holdouts."""

import hashlib

import numpy as np
import pytest

from reusable_holdout.errors import InputError
from reusable_holdout.guard.digests import _Column, holdout_digest


def test_a_column_whose_type_changes_between_chunks_is_refused():
    """Bytes of one type would pass for rows of another."""
    column = _Column(hashlib.blake2b)
    column.add(np.zeros(0))  # no rows have no type
    column.add(np.array([1, 2]))
    with pytest.raises(InputError, match="one type"):
        column.add(np.array([0.5]))


def test_rows_without_columns_are_counted():
    digests = {holdout_digest(hashlib.blake2b, np.zeros((rows, 0)), np.zeros(1)) for rows in (3, 4)}
    assert len(digests) == 2
