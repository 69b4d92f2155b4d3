"""What every form of predictions has in common: one query is prepared, or several."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from reusable_holdout.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["Form"]


class Form(ABC):
    """How predictions are checked and brought into one canonical form.

    Attributes
    ----------
    rows : int
        Number of holdout rows.
    """

    rows: int

    @abstractmethod
    def prepare(self, predictions: object) -> NDArray[Any]:
        """One query in canonical form; see :meth:`BoundMetric.prepare`."""

    @abstractmethod
    def _queries(self, predictions: object) -> Sequence[Any] | NDArray[Any]:
        """Something to take the queries from one by one; an array that cannot be meant so is refused here."""

    def prepare_many(self, predictions: object) -> NDArray[Any]:
        """Several queries in canonical form, the query first.

        Each slice has the bytes that `prepare` gives for it.

        Parameters
        ----------
        predictions : array-like, the query first, or list of one entry per query
            As for `prepare`.

        Returns
        -------
        numpy.ndarray of shape (queries, rows[, classes])

        Raises
        ------
        InputError
            If a query does not fit; where it is one query's fault the message begins with its index.
        """
        queries = self._queries(predictions)
        prepared = None
        for index, query in enumerate(queries):
            try:
                one = self.prepare(query)
            except InputError as error:
                raise InputError(f"query {index}: {error}") from None
            if prepared is None:  # stacking in the end would need the memory twice
                prepared = np.empty((len(queries), *one.shape), one.dtype)
            prepared[index] = one
        if prepared is None:
            raise InputError("predictions must hold at least one query; got none; pass one array per query")
        return prepared
