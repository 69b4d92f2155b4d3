"""A free trial of a model on synthetic rows before it reads the holdout; a model that fails on all is refused.

The trial decides by public facts alone: the container, the number of columns, their names and types, and training rows
if there are any. Synthetic rows hold no value of the holdout, so the trial reveals nothing of it.
"""

from __future__ import annotations

import contextlib
import re
import weakref
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard.boundary import quiet_but_for_names
from reusable_holdout.guard.models import Needed, length_of
from reusable_holdout.slips import warn

_LONGEST = 500  # characters of a model's error message that are shown
_FEW = 64  # rows of X_train: enough that most classes are predicted
_WHOLE, _REAL = np.dtype(np.int64), np.dtype(np.float64)  # a CSV reader chooses between them by the values
_NEAREST = {"b": "?", "i": "i4", "u": "u4", "f": "f4"}  # NumPy's types for the kinds of pandas' own
_DAY = np.datetime64("2000-01-01")
# Models that have read a holdout's rows in this process, and their earlier warnings about feature names.
_READERS: dict[int, tuple[weakref.ref[Any], list[str]]] = {}

_ADDRESS = re.compile("0x[0-9a-f]+")  # address of an object in memory
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_STRANGERS = "predicted labels must be among the classes"  # the beginning of a message of metrics.predictions


class _Failure(NamedTuple):
    """A model's failure on some rows: the exception's type and message, which are shown.

    `rule` is what equal failures have in common. It leaves out numbers that count the rows; these are in `counts`.
    """

    kind: str
    words: str
    rule: str
    counts: frozenset[str]


class Trial:
    """A trial of models on synthetic rows like the holdout's, made from public facts of its features.

    A model that refuses only some values fails in several ways, or not at all. It goes on to the holdout's rows, and if
    it fails there, that takes a charge. Labels that are no classes refuse a model wherever they occur, unless it names
    its classes. A model that was given a holdout's rows before is not tried again, because it could reveal rows that it
    kept.
    """

    def __init__(self, X: Any, needed: Needed) -> None:
        self._X, self._needed = X, needed

    def check(self, model: Any, X_train: Any) -> None:
        """Refuse a model that fails alike on all made-up data sets, and on training rows if they are given.

        A model that predicts unknown classes for some made-up rows is refused, too, unless it predicts classes of
        training rows. The InputError quotes the model's error: it has read no row of the holdout. scikit-learn's
        warnings on feature names come with each question.
        """
        heard = _heard_of(model)
        if heard is None:
            heard = []
            failure = self._refused(model, X_train, heard)
            if failure is not None:
                whatever = "" if _names_strangers(failure) else ", whatever their values,"
                raise InputError(
                    f"the model must predict rows with the holdout's columns; {type(model).__name__} fails on made-up "
                    f"rows{whatever} with {failure.kind}: {failure.words}; nothing was asked and nothing was charged; "
                    "fix it, pass X_train and y_train if it works on those, or ask about its predictions"
                )
            number, forget = id(model), _READERS.pop  # a model may outlive these names when a process ends
            _READERS[number] = weakref.ref(model, lambda _: forget(number, None)), heard
        for words in dict.fromkeys(heard):
            with contextlib.suppress(UserWarning):  # a filter that turns it into an error refuses no model
                warn(words, UserWarning)

    def _refused(self, model: Any, X_train: Any, heard: list[str]) -> _Failure | None:
        """Return the reason to refuse a model: an unknown class, or the same failure on all rows; else None."""
        if is_alike(self._X, X_train) and self._failure(model, _first_of(X_train), heard) is None:
            return None
        names_classes = hasattr(model, "classes_")  # check_model compares them with the guard's
        may_meet_strangers = self._needed.response == "labels" and not names_classes
        found: list[_Failure | None] = []
        for rows in made_like(self._X):
            found.append(None if rows is None else self._failure(model, rows, heard))
            if found[-1] is None and not may_meet_strangers:
                return None
        failures = [one for one in found if one is not None]
        strangers = next(filter(_names_strangers, failures), None) if may_meet_strangers else None
        return strangers or (failures[0] if len(failures) == len(found) and _are_alike(failures) else None)

    def _failure(self, model: Any, rows: Any, heard: list[str]) -> _Failure | None:
        """Return a model's failure on rows, if it fails."""
        count, form, told = length_of(rows), self._needed.form, False
        try:
            with quiet_but_for_names(heard):
                predictions = self._needed.predicted(model, rows)
                told = True
                sized = getattr(predictions, "shape", None) or isinstance(predictions, list | tuple)
                keeps_all = sized and length_of(predictions) == form.rows  # perhaps the holdout's, stored
                form.of_rows(form.rows if keeps_all else count).prepare(predictions)
        except KeyboardInterrupt:  # the user's, not the model's
            raise
        except BaseException as error:
            kind, words = type(error).__name__, _ADDRESS.sub("0x", _words(error))[:_LONGEST]
            rule = words.partition(";")[0] if told else words
            entries = count * int(np.prod(np.shape(rows)[1:]))
            counts = frozenset(str(size + step) for size in (count, entries) for step in (-1, 0, 1))
            return _Failure(kind, words, rule, counts)
        return None


def _names_strangers(failure: _Failure) -> bool:
    return failure.words.startswith(_STRANGERS)


def _are_alike(failures: list[_Failure]) -> bool:
    """Return True if failures have the same type and the same message, but for numbers that count the rows.

    >>> short = [_Failure("ValueError", "", f"got {n} of 3 rows", frozenset({str(n)})) for n in (2, 64)]
    >>> other = [_Failure("ValueError", "", f"unknown: {value}", frozenset({"2"})) for value in (0.0, 1.0)]
    >>> _are_alike(short), _are_alike(other)
    (True, False)
    """
    forms = {(one.kind, _NUMBER.sub("#", one.rule)) for one in failures}
    places = zip(*(_NUMBER.findall(one.rule) for one in failures), strict=True)
    return len(forms) == 1 and all(
        len(set(numbers)) == 1
        or all(number in one.counts for number, one in zip(numbers, failures, strict=True))
        for numbers in places
    )


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "no words"


def _heard_of(model: Any) -> list[str] | None:
    """Return the warnings about a model's feature names; None if it has not read a holdout's rows yet."""
    try:
        weakref.ref(model)
    except TypeError:  # it cannot be remembered, so it may have read them
        return []
    known, heard = _READERS.get(id(model), (lambda: None, []))
    return heard if known() is model else None


# ---- made-up rows


class _Variant(NamedTuple):
    """Values of made-up rows: numbers, a word, the type of int64 and float64 columns, and True if objects are words."""

    numbers: NDArray[np.float64]
    word: str
    default: np.dtype[Any]
    worded: bool


_VARIANTS = (  # they have only public facts in common; the first is longer than most tables are wide
    _Variant(np.random.default_rng(0).normal(0.0, 3.0, 64), "some words of text", _REAL, True),
    _Variant(np.zeros(3), "a", _REAL, True),
    _Variant(np.ones(2), "b", _WHOLE, False),
    _Variant(np.arange(16.0), "", _WHOLE, True),
)


def made_like(X: Any) -> Iterator[Any]:
    """Yield several synthetic data sets like X, made without its values; None for one that cannot be made."""
    for variant in _VARIANTS:
        try:
            made = _like(X, variant)
        except Exception:  # a column has a type that these values do not fit
            made = None
        yield made


def _first_of(X_train: Any) -> Any:
    from sklearn.utils import _safe_indexing  # noqa: PLC0415 - importing the library does not load scikit-learn

    return _safe_indexing(X_train, list(range(min(_FEW, length_of(X_train)))))


def is_alike(X: Any, other: Any) -> bool:
    """Return True if other data have the same container and columns."""
    kinds = {np.ndarray if isinstance(one, np.ndarray) else type(one) for one in (X, other)}  # mapped or not
    if len(kinds) > 1 or np.shape(X)[1:] != np.shape(other)[1:]:
        return False
    return list(getattr(X, "columns", ())) == list(getattr(other, "columns", ()))


def _like(X: Any, variant: _Variant) -> Any:
    if isinstance(X, pd.DataFrame):
        columns = {place: _column(dtype, variant) for place, dtype in enumerate(X.dtypes)}
        return pd.DataFrame(columns, index=range(len(variant.numbers))).set_axis(X.columns, axis=1)
    if isinstance(X, pd.Series):
        column = _column(X.dtype, variant)
        column.name = X.name
        return column
    if type(X).__module__.startswith("polars.") and hasattr(X, "schema"):
        return _polars(X, variant)
    if isinstance(X, list | tuple):
        array = np.asarray(X)
        return type(X)(_array(array.dtype, array.shape[1:], variant).tolist())
    array = _array(X.dtype, X.shape[1:], variant)
    return array if isinstance(X, np.ndarray) else type(X)(array)  # or a sparse matrix


def _polars(X: Any, variant: _Variant) -> Any:
    import polars as pl  # noqa: PLC0415 - it is loaded, for X is one of its frames

    def column(dtype: Any) -> Any:
        if dtype in {pl.String, pl.Categorical}:
            return pl.Series([variant.word] * len(variant.numbers), dtype=dtype)
        if dtype in {pl.Boolean, pl.Int64, pl.Float64}:
            return pl.Series(_values(np.dtype(bool) if dtype == pl.Boolean else _REAL, variant))
        if not dtype.is_numeric():
            raise TypeError("a type that is not made up")
        numbers = _sized(variant.numbers, unsigned=dtype.is_unsigned_integer())
        return pl.Series(numbers).cast(dtype, strict=False)

    return pl.DataFrame({name: column(dtype) for name, dtype in X.schema.items()})


def _array(dtype: np.dtype[Any], width: tuple[int, ...], variant: _Variant) -> NDArray[Any]:
    column = _values(dtype, variant)
    spread = column.reshape(len(column), *(1 for _ in width))
    return np.ascontiguousarray(np.broadcast_to(spread, (len(column), *width)))


def _values(dtype: np.dtype[Any], variant: _Variant) -> NDArray[Any]:
    numbers = variant.numbers
    if dtype in (_WHOLE, _REAL):
        return numbers.astype(variant.default)
    if dtype.kind == "O":
        return np.array([variant.word] * len(numbers) if variant.worded else numbers.tolist(), dtype=object)
    if dtype.kind in "US":  # not of X's width, which is the length of its longest text
        return np.array([variant.word] * len(numbers)).astype(dtype.kind)
    if dtype.kind in "mM":
        days = np.round(numbers).astype("timedelta64[D]")
        return (_DAY + days if dtype.kind == "M" else days).astype(dtype)
    return numbers > 0 if dtype.kind == "b" else _sized(numbers, unsigned=dtype.kind == "u").astype(dtype)


def _sized(numbers: NDArray[np.float64], *, unsigned: bool) -> NDArray[np.float64]:
    return np.abs(numbers) if unsigned else numbers


def _column(dtype: Any, variant: _Variant) -> pd.Series[Any]:
    """Return a synthetic column of a pandas type.

    A categorical column gets categories of its own, because the holdout's categories are values of it.
    """
    numbers = variant.numbers
    if isinstance(dtype, np.dtype):
        return pd.Series(_values(dtype, variant))
    if isinstance(dtype, pd.CategoricalDtype):
        values: Any = [variant.word] * len(numbers) if variant.worded else numbers
        return pd.Series(pd.Categorical(values, categories=sorted(set(values)), ordered=bool(dtype.ordered)))
    if isinstance(dtype, pd.DatetimeTZDtype):
        return pd.Series(pd.DatetimeIndex([_DAY] * len(numbers)).tz_localize("UTC")).astype(dtype)
    return pd.Series(_values(np.dtype(_NEAREST.get(dtype.kind, "U")), variant)).astype(dtype)
