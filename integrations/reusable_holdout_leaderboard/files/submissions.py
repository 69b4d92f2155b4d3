"""Submitted files: read, checked and brought into the order of the rows, before anything is asked.

All that is known here of the labels is public: ids, number of rows, classes. So messages may quote the file, and a file
that does not fit costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import of_extra
from reusable_holdout_leaderboard.files.forms import is_parquet

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from reusable_holdout_leaderboard.files.expected import Expected

__all__ = ["SMALL_BYTES", "is_small_csv", "labelled", "parse_submission"]

SMALL_BYTES = 1 << 20


def parse_submission(content: bytes, filename: str, expected: Expected) -> NDArray[Any]:
    r"""Predictions of a submitted file, in the order of the rows.

    It depends on nothing private, asks nothing and costs nothing. Of strangers' files, which may unpack to any size, it
    is called in a process of its own: see :class:`~reusable_holdout_leaderboard.files.decoder.Decoder`.

    Parameters
    ----------
    content : bytes
        CSV with a header, in UTF-8, separated by commas or semicolons; or Parquet.
    filename : str
        Says which: Parquet if it ends in ".parquet" or ".pq", or if the content does.
    expected : Expected

    Returns
    -------
    numpy.ndarray of shape (rows,) or (rows, classes)
        Class labels, or float64.

    Raises
    ------
    SubmissionError
        Listing what does not fit, the first offenders of each kind.

    Examples
    --------
    >>> from reusable_holdout_leaderboard import Expected
    >>> expected = Expected(ids=("a", "b"), rows=2, id_column="id", columns=("prediction",), response="scores")
    >>> parse_submission(b"id,prediction\nb,0.5\na,1", "mine.csv", expected)
    array([1. , 0.5])
    """
    with of_extra("leaderboard", "a submitted file"):
        from reusable_holdout_leaderboard.files.decode import decoded  # noqa: PLC0415 - Arrow is large

    return labelled(decoded(content, filename, expected.form), expected)


def labelled(values: NDArray[Any], expected: Expected) -> NDArray[Any]:
    """Predictions of what :func:`~reusable_holdout_leaderboard.files.decode.decoded` makes of a file."""
    return np.array(expected.classes)[values] if expected.form.labels else values


def is_small_csv(content: bytes, filename: str) -> bool:
    """Whether a file is read as CSV, and is so small that what it takes to be read is nothing."""
    return len(content) <= SMALL_BYTES and not is_parquet(content, filename)
