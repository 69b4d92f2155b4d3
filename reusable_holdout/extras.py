"""Libraries that come with an extra: whoever lacks one is told which to install."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from reusable_holdout.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["of_extra"]


@contextmanager
def of_extra(extra: str, what: str) -> Iterator[None]:
    """Import in its block what an extra brings.

    Parameters
    ----------
    extra : str
        Its name in this library's metadata.
    what : str
        What needs it, as the beginning of a sentence.

    Raises
    ------
    MissingExtraError
        Where the block raises an ImportError.

    Examples
    --------
    >>> with of_extra("plot", "a picture"):
    ...     import no_such_library
    Traceback (most recent call last):
    ...
    reusable_holdout.errors.MissingExtraError: a picture needs no_such_library, which cannot be imported; run pip
    install "reusable-holdout[plot]"
    """
    try:
        yield
    except ImportError as error:
        library = (error.name or extra).partition(".")[0]
        missing = MissingExtraError(what, library, extra)
    else:
        return
    raise missing from None
