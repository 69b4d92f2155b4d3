"""The check that a holdout shares no rows with training tables, or with holdouts that were released.

The owner holds both tables, so the check is free, and its error says how many rows are shared. By ids, one shared row
is too many. By features, chance agreement is allowed for.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from reusable_holdout.errors import InputError, OverlapError, TamperedLedgerError
from reusable_holdout.guard.configuration import Configuration, KeptRows
from reusable_holdout.guard.digests import ContentKey
from reusable_holdout.guard.inputs import PrivateData, rows_and_labels
from reusable_holdout.guard.known_rows import (
    OwnedRows,
    are_ids,
    by_name,
    comparable_names,
    names_of,
    secret_of,
)
from reusable_holdout.guard.row_sets import OWNERS, Copies, RowSet, by_chance, column_names, ordered_rows
from reusable_holdout.guard.views import VIEW, View
from reusable_holdout.ledger import Ledger

_TRAINING = (
    "training rows must not be in the holdout; {common} of its {rows} rows are in training=, {explained}; {nothing}; "
    'take them out of one of the two (and train again), or pass allow={{"overlap"}}: then no promise holds'
)
ADDED = (
    "added rows must be new; {common} of the {rows} are rows of this guard or of an earlier epoch, {explained}; "
    "{nothing}; leave them out"
)
_RELEASED = (
    "a new holdout must be rows that were not used before; {common} of its {rows} rows are rows of epoch {epoch}, "
    '{explained}; {nothing}; pass fresh rows, or allow={{"overlap"}}: then no promise holds'
)


def check_training(known: OwnedRows, training: Any, *, nothing: str) -> None:
    """Refuse a holdout with more training rows than chance explains, by their ids or by a table with its columns.

    An OverlapError says how many rows are shared. An InputError says that the two cannot be compared.
    """
    if isinstance(training, str | Path):
        raise InputError(f"training= must be data; got a path; {nothing}; read the file first")
    table = rows_and_labels(training, None)[0]
    try:
        shape = np.shape(table)
    except ValueError:
        raise InputError(
            f"training= must be rows of one length; got rows of several lengths; {nothing}"
        ) from None
    if len(shape) == 1:
        if known.ids is None:
            raise InputError(
                "training= must be a table with the holdout's columns if the guard has no ids; got one column; "
                f"{nothing}; pass such a table, or pass the holdout's ids=, too"
            )
        names = names_of(table, what="training=", nothing=nothing)
        if names.kind != known.ids.kind:
            raise InputError(
                f"training= must hold names of the same kind as ids=; got {names.kind}, ids= are {known.ids.kind}; "
                f"{nothing}; convert one of them"
            )
        _check_ids(known.ids.rows.common(names.rows), known.ids.rows.copies, _TRAINING, nothing)
        return
    X = known.holdout.X
    if X is None:
        raise InputError(
            f"training= must be ids if the guard has no features; got a table; {nothing}; pass the ids of the training "
            "rows, and the holdout's as ids="
        )
    if not shape[0]:
        raise InputError(
            f"training= must hold rows; got none; {nothing}; leave it out if nothing was trained"
        )
    try:
        names_in_order = comparable_names(table, X)
    except InputError as error:
        raise InputError(
            f"training= must have the holdout's columns, without labels; {error}; {nothing}; pass the same columns"
        ) from None
    rows, features = ordered_rows(table, names_in_order), known.holdout.row_set
    _check_features(features.common(rows), features.copies, rows.copies, _TRAINING, nothing)


def kept_of_fresh(
    rows: OwnedRows, ledger: Ledger, key: bytes, beside: Any, *, words: str = _RELEASED
) -> KeptRows:
    """Return the digests of a new holdout that a ledger keeps; refuse rows of an earlier epoch, unless that is allowed.

    Columns without names are compared with `beside`, the features of the last epoch. Raises OverlapError if more
    rows than chance explains are of an earlier epoch; InputError if the earlier rows had ids and these have none;
    TamperedLedgerError if the ledger's data about an epoch's rows are not those that were sealed.
    """
    epochs = [Configuration.parse(text) for text in ledger.configurations()]
    features, named = _features_as_before(rows.holdout, epochs, beside)
    if not rows.allowed:
        whole = ContentKey(key).holdout(rows.holdout.X, rows.holdout.y)
        for epoch in epochs:
            _check_not_known(whole, rows, ledger, epoch, words)
            for kept in _kept_of(ledger, epoch):
                _check_fresh(rows, features, kept, key, epoch.epoch, named=named, words=words)
    return rows.kept_as(key, ledger.epoch + 1, features, by_name=named)


def _kept_of(ledger: Ledger, epoch: Configuration) -> Iterator[dict[str, bytes] | None]:
    """Yield what a ledger keeps of the rows of one epoch, and of those that were added to them."""
    yield KeptRows(epoch.known_rows, ledger.known_rows(epoch.epoch)).parts()
    for row in ledger.rows(kind=VIEW, epoch=epoch.epoch):
        added = View.parse(row.told).metric.get("known", {})
        yield {part: base64.b64decode(text) for part, text in added.items()}


def _check_not_known(whole: str, rows: OwnedRows, ledger: Ledger, epoch: Configuration, words: str) -> None:
    """Refuse exactly the rows of an epoch, or exactly those that were added, as labels alone have no names."""
    added = (View.parse(row.told).metric.get("added") for row in ledger.rows(kind=VIEW, epoch=epoch.epoch))
    if whole in {epoch.holdout, *added}:
        count = Copies(rows.holdout.bound.rows, 0)
        raise _overlap(
            count.rows, 0, count, "as a whole", words.replace("{epoch}", str(epoch.epoch)), rows.nothing
        )


def _features_as_before(
    holdout: PrivateData, epochs: list[Configuration], beside: Any
) -> tuple[RowSet | None, bool]:
    """Return the features with columns ordered as in earlier epochs, and True if they are ordered by column name."""
    if holdout.X is None:
        return None, False
    names = column_names(holdout.X)
    before = (by_name(part) for one in epochs for part in one.known_rows if not are_ids(part))
    named = next(before, names is not None)
    if named == (names is not None):
        return holdout.row_set, named
    others = column_names(beside) if named else None
    fitting = others is not None and (len(others),) == np.shape(holdout.X)[1:]
    return ordered_rows(holdout.X, others if fitting else None), named


def _check_fresh(
    known: OwnedRows,
    features: RowSet | None,
    parts: dict[str, bytes] | None,
    key: bytes,
    epoch: int,
    *,
    named: bool,
    words: str,
) -> None:
    """Refuse rows that are among the rows of one epoch, given the parts that the ledger keeps of it."""
    nothing = known.nothing
    if parts is None:
        raise TamperedLedgerError([f"the rows of epoch {epoch} are not those that were sealed; {nothing}"])
    words = words.replace("{epoch}", str(epoch))
    ids = next(filter(are_ids, parts), None)
    if ids is not None:
        if known.ids is None or known.ids.part != ids:
            raise InputError(
                f"the next rows must come with {ids}, as those of epoch {epoch} did; got "
                f"{'none' if known.ids is None else known.ids.kind}; {nothing}; pass ids= of that kind"
            )
        rows = known.ids.rows
        common = rows.common_with(parts[ids], secret_of(key, epoch, ids))
        _check_ids(common, rows.copies, words, nothing)
        return
    for part, text in parts.items():
        if features is not None and by_name(part) == named:
            secret = secret_of(key, epoch, part)
            old, common = RowSet.copies_in(text, secret), features.common_with(text, secret)
            _check_features(common, features.copies, old, words, nothing)


def _check_ids(common: int, fresh: Copies, words: str, nothing: str) -> None:
    if common:
        raise _overlap(common, 0, fresh, "by their ids", words, nothing)


def _check_features(common: int, fresh: Copies, known: Copies, words: str, nothing: str) -> None:
    most = by_chance(fresh, known, OWNERS)
    if common > most:
        why = "no rows repeat within the two tables, so chance explains none"
        if most:
            why = f"chance explains {most:,} at most, by how often rows repeat in the two tables"
        raise _overlap(common, most, fresh, f"by their features, and {why}", words, nothing)


def _overlap(common: int, most: int, fresh: Copies, explained: str, words: str, nothing: str) -> OverlapError:
    told = words.format(common=f"{common:,}", rows=f"{fresh.rows:,}", explained=explained, nothing=nothing)
    return OverlapError(told, common, most)
