"""Subjects of questions: models, predictions, comparisons, and workers' measurements; their names and measures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.boundary import attempt
from reusable_holdout.guard.digests import predictions_digest
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.models import check_model, fitted
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.guard.walk_forward import WalkForward, check_procedure, content_of
from reusable_holdout.metrics import BoundMetric
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.metrics.containers import as_array, one_column
from reusable_holdout.plan.numbers import bisected, round_up
from reusable_holdout.rules import Floats, Integers, difference, score_of
from reusable_holdout.rules.samples import Sample, sample_of, unpacked
from reusable_holdout.slips import percentage
from reusable_holdout.ways import State, Way
from reusable_holdout.ways.check import Check

_NO_NUMBERS = (str, bytes, bytearray, bool, np.bool_)
_SURROGATE = re.compile("[\ud800-\udfff]")  # no text has one
_GRID = 2**28  # tolerances that differ by less are the same question
_ACCURACY = 2.0**-40  # of the range


def checked_priors(priors: Any, count: int, unit: Unit, metric: str, *, several: bool) -> Floats:
    """Return priors in [0, 1]; InputError if one is missing, no number, or beyond the metric's bounds."""
    if priors is None:
        raise InputError(
            "a prior must be stated, or for a model come from X_train and y_train; got none; pass prior=, your own "
            "estimate of the score, such as a cross-validated one; nothing was asked"
        )
    if several and not isinstance(priors, list):
        given = one_column(as_array(priors, what="priors"))
        if given.dtype.kind in "mM":
            raise InputError(f"priors must be numbers; got dtype {given.dtype}; nothing was asked")
        shape, each = given.shape, given.tolist()
    else:
        each = priors if several else [priors]
        shape = (len(each),)
    if shape != (count,):
        raise InputError(
            f"priors must have shape ({count},), one for each question; got {shape}; nothing was asked"
        )
    return np.array([unit.unit(_number(one, unit, metric)) for one in each])


def _number(prior: Any, unit: Unit, metric: str) -> float:
    if type(prior) is float and unit.lower <= prior <= unit.upper:
        return prior
    try:
        number = float(prior)
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    odd = isinstance(prior, _NO_NUMBERS) or np.ndim(prior) or np.asarray(prior).dtype.kind not in "fiuO"
    if odd or not unit.lower <= number <= unit.upper:
        hint = percentage(number, most=unit.upper)
        raise InputError(
            f"a prior must be a number in [{unit.lower:g}, {unit.upper:g}], the range of {metric}; got {prior!r}{hint}"
            "; nothing was asked and nothing was charged"
        )
    return number


def checked_tolerances(tolerances: Any, count: int, unit: Unit) -> Floats | None:
    """Return the tolerances that questions name for themselves, in [0, 1]; None if they name none."""
    if tolerances is None:
        return None
    try:
        given = np.atleast_1d(np.asarray(tolerances))
        numbers = all(np.asarray(one).dtype.kind in "fiuO" for one in given.ravel().tolist())
        limits = given.astype(np.float64) / unit.span if numbers else np.zeros(0)
    except (TypeError, ValueError, OverflowError):
        limits = np.zeros(0)
    if limits.shape != (count,) or not ((limits >= 1.0 / _GRID) & (limits <= 1.0)).all():
        raise InputError(
            f"tolerances must be {count} numbers in (0, {unit.span:g}], one for each question; got {tolerances!r}; "
            "nothing was asked and nothing was charged"
        )
    return limits


def tolerance_unit(tolerance: float) -> int:
    """Return a tolerance on the grid that tells questions apart."""
    return round(tolerance * _GRID)


def check_tolerances_kept(way: Check, priors: Floats, tolerances: Floats, state: State, unit: Unit) -> None:
    """Refuse tolerances that cannot be kept now, before anything is decided; the error names one that can be."""
    for prior, tolerance in zip(priors.tolist(), tolerances.tolist(), strict=True):
        keeps = partial(way.rule.keeps, prior, length=way.length(state))  # by public numbers alone
        if keeps(tolerance):
            continue
        kept = bisected(keeps, kept=1.0, refused=tolerance, accuracy=_ACCURACY)
        raise InputError(
            f"a tolerance must be at least {round_up(kept * unit.span):g} at this prior after {state.charges} charges; "
            f"got {tolerance * unit.span:g}; nothing was asked and nothing was charged; widen it"
        )


def checked_names(names: Sequence[str] | None, count: int) -> list[str]:
    """Return the names of questions, empty by default; InputError unless there is one text for each question."""
    if names is None:
        return [""] * count
    labels = list(names) if isinstance(names, Iterable) and not isinstance(names, str) else [names]
    if len(labels) != count or not all(
        isinstance(label, str) and not _SURROGATE.search(label) for label in labels
    ):
        raise InputError(
            f"names must be text, one for each question; got {len(labels)} for {count} questions, or one is not text"
        )
    return labels


def checked_series(series: object, *, by_series: bool) -> str:
    """Return the name of a series; InputError if it is no text, or if the guard is no board of claims."""
    (name,) = checked_names([series], 1)  # type: ignore[list-item]
    if name and not by_series:
        raise InputError(
            f"series=, such as a team's name, belongs to a board of claims; got {series!r}; leave it out; "
            "nothing was asked"
        )
    return name


_R = TypeVar("_R")
_METHODS = ("predict", "predict_proba", "decision_function")


class Difference(NamedTuple):
    """The difference of two models, or of two predictions: new minus old.

    Attributes
    ----------
    new, old : estimator or array-like
        Both models, or both predictions for the holdout's rows.
    """

    new: Any
    old: Any


class Measured(NamedTuple):
    """One fitted model that a worker measured, to be asked about in another process.

    Attributes
    ----------
    model : estimator
    content : bytes
        The model's fingerprint, the same in every process.
    found : bytes or None
        The encrypted measurement on the holdout, or the fact that the model failed there. None if nothing was measured;
        then the model is measured when the guard is asked, if the question is new.
    """

    model: Any
    content: bytes
    found: bytes | None = None


class Subject(NamedTuple):
    """The subject of a question, checked and named."""

    content: bytes
    models: tuple[Any, ...] = ()  # one, or the new and the old one
    predictions: NDArray[Any] | None = None  # in place of models, prepared; shape (1 or 2, rows[, classes])
    found: bytes | None = None  # concealed


def is_several(given: Any) -> bool:
    """Return True for a list or tuple of subjects; a list of labels or numbers is one subject: predictions."""
    if not isinstance(given, list | tuple) or isinstance(given, Difference | Measured):
        return False
    return not given or not (given[0] is None or np.isscalar(given[0]))


def is_model(given: object) -> bool:
    """Return True if something predicts: a model, not its predictions."""
    if type(given) is np.ndarray:
        return False
    return isinstance(given, type | Measured | WalkForward) or any(
        callable(getattr(given, name, None)) for name in _METHODS
    )


def prepared_subjects(view: GuardedView, given: Sequence[Any], *, paired: bool) -> list[Subject]:
    """Return several subjects, checked by public facts; InputError names what does not fit, and nothing was asked."""
    pairs = [tuple(one) if paired else (one,) for one in given]
    of_models = [is_model(part) for pair in pairs for part in pair]
    if any(of_models) and not all(of_models):
        raise InputError(
            "models and predictions cannot be asked about together; got both; nothing was asked; pass one kind"
        )
    if any(of_models):
        return [_of_models(view, pair) for pair in pairs]
    bound = view.holdout.bound
    prepared = (
        bound.prepare_many([part for pair in pairs for part in pair]) if paired or len(pairs) > 1 else None
    )
    if prepared is None:
        prepared = bound.prepare(given[0])[None]
    size = 2 if paired else 1
    parts = [prepared[size * place : size * (place + 1)] for place in range(len(pairs))]
    return [Subject(predictions_digest(part if paired else part[0]), (), part) for part in parts]


def _of_models(view: GuardedView, pair: Sequence[Any]) -> Subject:
    holdout = view.holdout
    if holdout.X is None:
        raise InputError(
            "this guard holds labels only; got a model; nothing was asked; ask with predictions, or give it X"
        )
    if len(pair) == 2 and pair[0] is pair[1]:
        raise InputError(
            f"two models must be compared; got one {type(pair[0]).__name__} twice, which differs from itself by 0; "
            "nothing was asked and nothing was charged; pass the new model and then the old one"
        )
    (first, *_) = pair
    if isinstance(first, Measured):
        sound = type(first.content) is bytes and (first.found is None or type(first.found) is bytes)
        if len(pair) > 1 or not sound:
            raise InputError(
                "a worker's measurement must come from this guard's measure(), unchanged; it does not; nothing was "
                "asked and nothing was charged"
            )
        _check_one(view, first.model)
        return Subject(first.content, (first.model,), None, first.found)
    models = [fitted(model, None, None) for model in pair]
    for model in models:
        _check_one(view, model)
    contents = [content_of(one) if isinstance(one, WalkForward) else one for one in models]
    return Subject(fingerprint(contents if len(contents) > 1 else contents[0]), tuple(models))


def _check_one(view: GuardedView, model: Any) -> None:
    holdout = view.holdout
    if isinstance(model, WalkForward):
        check_procedure(model, holdout, view.plan)
    else:
        check_model(model, holdout.X, response=view.metric.response, classes=holdout.bound.classes)


# ---- measured, outside of the ledger's lock


def measured(
    view: GuardedView, way: Way, subjects: Sequence[Subject], X_train: Any
) -> list[Integers | Sample | int | None]:
    """Return the measurement that a way needs of each subject; None if it failed or was trained on holdout rows.

    All models are tried on synthetic rows first. A refusal there is free, so it must reveal nothing of the holdout.
    """
    fresh = [model for one in subjects for model in one.models if one.found is None]
    of_models = any(one.models for one in subjects)  # measured elsewhere or not yet
    if fresh or X_train is not None:
        view.holdout.try_out(fresh, X_train)
    learnt = [model.X_history for one in subjects for model in one.models if isinstance(model, WalkForward)]
    if X_train is not None and of_models:
        learnt.append(X_train)
    if any(map(view.trained_on.holds, learnt)):
        return [None] * len(subjects)
    bound = view.holdout.bound
    if (
        isinstance(way, Check)
        and bound.metric.kernel is not None
        and all(one.predictions is not None for one in subjects)
    ):
        return _of_predictions(way, bound, subjects)
    return [_measured(view, way, one) for one in subjects]


def _of_predictions(way: Check, bound: BoundMetric, subjects: Sequence[Subject]) -> list[Any]:
    """Measure all predictions at once; either all of them fail, or none."""
    every = [one.predictions for one in subjects]
    stacked = every[0] if len(every) == 1 else np.concatenate(every)  # type: ignore[arg-type]
    found = _attempted(bound, lambda: way.rule.measured_many(bound, stacked))  # type: ignore[arg-type]
    if found is None:
        return [None] * len(subjects)
    if len(found) == len(subjects):
        return list(found)
    return list(difference(found[::2], found[1::2]))


def _measured(view: GuardedView, way: Way, one: Subject) -> Integers | Sample | int | None:
    bound = view.holdout.bound
    if one.found is not None:
        numbers = view.content.reveal(one.found, view.about(way, one.content))
        if numbers is None or isinstance(way, Check):
            return numbers
        return unpacked(bound, numbers) if way.by_rows else int(numbers[0])
    prepared = one.predictions if not one.models else view.holdout.predicted_by(one.models)
    return None if prepared is None else _attempted(bound, lambda: _found(way, bound, prepared))


def _found(way: Way, bound: BoundMetric, prepared: NDArray[Any]) -> Integers | Sample | int:
    if not isinstance(way, Check):
        return sample_of(bound, prepared[0]) if way.by_rows else int(score_of(bound, prepared[:1])[0])
    found = way.rule.measured_many(bound, prepared)
    return found[0] if len(found) == 1 else difference(found[0], found[1])


def numbers_of(found: Integers | Sample | int | None) -> Integers | None:
    """Return a measurement as integers that can be sent to another process."""
    if isinstance(found, Sample):
        return found.packed()
    return np.array([found], dtype=np.int64) if isinstance(found, int) else found


def _attempted(bound: BoundMetric, measure: Callable[[], _R]) -> _R | None:
    """Return the measurement; None if a user's own metric fails on the rows, with any error."""
    if bound.metric.kernel is None:
        return attempt(measure)
    try:
        return measure()
    except ModelError:
        return None


def weighed(
    way: Check, bound: BoundMetric, found: Sequence[Any], priors: Floats, tolerances: Floats | None
) -> tuple[Integers | None, NDArray[np.bool_]]:
    """Return the numbers that a check decides on, shape (questions, numbers), and which questions failed."""
    failed = np.array([one is None for one in found])
    if failed.all():
        return None, failed
    if failed.any():
        blank = np.zeros_like(next(one for one in found if one is not None))
        found = [blank if one is None else one for one in found]
    return way.rule.weighed(bound, np.stack(found), priors, tolerances), failed
