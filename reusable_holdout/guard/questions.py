"""Questions as users state them, and as checked and named subjects before the ledger is read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from reusable_holdout.answer import Answer
from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.models import check_data, length_of
from reusable_holdout.guard.subjects import (
    Difference,
    Subject,
    checked_names,
    checked_priors,
    checked_series,
    checked_tolerances,
    is_several,
    prepared_subjects,
    tolerance_unit,
)
from reusable_holdout.guard.time_order import check_embargo
from reusable_holdout.guard.view import GuardedView
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.rules import Floats
from reusable_holdout.ways import Way

_ERRORS, _APART = 2**16, 32  # the grid of standard errors, and their shift above tolerances, in bits

AnswerOrError: TypeAlias = Answer | ModelError


class Question(NamedTuple):
    """One question, or a batch of one way.

    Attributes
    ----------
    way : {"evaluate", "gate", "reveal", "choose", "final"}
        On a board "evaluate" is a claim.
    subjects : model, predictions, Difference, or list of them
        Several are a list or tuple; an array is always one subject.
    priors : float or sequence of float
        The analyst's own estimates, or what a gate must reach. A final needs none; with several models, priors decide
        how its failure probability is divided among them.
    tolerance : float or sequence of float, optional
        Largest distance of the answer to one question from the population value.
    view : guard, optional
        Metric or slice, from :meth:`ReusableHoldout.on`; by default the guard that is asked.
    guardrails : dict of guard to float, optional
        For a gate: other metrics of the rows, and the value that each must reach.
    series : str
        On a board: whose claim it is.
    name : str, or sequence of str
        Name of the question in the history.
    X_train : array-like, optional
        Rows that the models were trained on: if they hold rows of the holdout, the question fails. A prior's standard
        error counts as at least the standard error of a score on so many rows.
    anew : bool
        On a board: ask though these predictions were answered before, at this series' own expense.
    prior_error : float or sequence of float
        Standard errors of the priors by the analyst's own data, in the metric's unit. An error that is larger than the
        plan's makes its question's threshold and interval wider; for a smaller one the plan's is used.
    once : bool
        True if a model has one answer for all priors: the answer to the first question of this kind about it.
    """

    way: str
    subjects: Any
    priors: Any = None
    tolerance: Any = None
    view: Any = None
    guardrails: Mapping[Any, Any] | None = None
    series: str = ""
    name: Any = None
    X_train: Any = None
    anew: bool = False
    prior_error: Any = 0.0
    once: bool = False


class Posed(NamedTuple):
    """A checked question, before the ledger is read."""

    view: GuardedView
    way: Way
    several: bool  # True if a list was asked about
    subjects: list[Subject]
    digests: list[bytes]
    priors: Floats
    tolerances: Floats | None
    beyond: Floats  # what each prior's own standard error adds to the plan's
    names: list[str]
    question: Question
    unit: Unit


def posed(view: GuardedView, question: Question) -> Posed:
    """Check a question and give it the digests by which it is known again; only public facts are used."""
    at: GuardedView = view if question.view is None else view.checked_view(question.view)
    given = question.subjects
    several = is_several(given)
    listed = list(given) if several else [given]
    if not listed:
        raise InputError("a list of subjects must hold at least one; got none; nothing was asked")
    if question.way == "choose" and not several:
        raise InputError(
            "a choice must be among a list of candidates; got one subject; nothing was asked; pass a list"
        )
    paired = isinstance(listed[0], Difference)
    if paired:
        at.check_differences()
    way = at.way_of(question.way, paired=paired, guarded=question.guardrails is not None)
    unit = at.unit_of_pairs if paired else at.unit
    count = len(listed)
    if question.way == "final" and question.priors is None:
        priors = np.zeros(count)
    else:
        priors = checked_priors(question.priors, count, unit, at.metric.name, several=several)
    if question.X_train is not None:
        check_data(question.X_train, "X_train")
        check_embargo(at.root.holdout.begins, question.X_train, nothing="nothing was asked")
    tolerances, beyond = _tolerances(question, way, count, unit), _beyond(question, at, way, priors)
    checked_series(question.series, by_series=way.by_series)
    named = question.name
    if not several or isinstance(named, str):
        named = [named or ""] * count
    names = checked_names(named, count)
    subjects = prepared_subjects(at, listed, paired=paired)
    digests = [
        at.content.question(way.name, one.content, 0 if way.by_series or way.ends else way.grid(prior), limit)
        for one, prior, limit in zip(subjects, priors.tolist(), _limits(tolerances, beyond), strict=True)
    ]
    if question.once:  # unless it was answered with this prior, by itself
        own, find = way.name.encode() + b" ", at.transcript.ledger.find
        once = [at.content.question("once", own + one.content, 0) for one in subjects]
        digests = [each if find(each) is not None else one for each, one in zip(digests, once, strict=True)]
    return Posed(at, way, several, subjects, digests, priors, tolerances, beyond, names, question, unit)


def _tolerances(question: Question, way: Way, count: int, unit: Unit) -> Floats | None:
    if question.tolerance is not None and not way.takes_tolerances:
        raise InputError(
            "a question's own tolerance is for evaluate and compare, where the rows' evidence or the plan's tolerance "
            f"decides; a gate certifies what it names; got {question.tolerance!r}; leave it out; nothing was asked"
        )
    return checked_tolerances(question.tolerance, count, unit)


def _beyond(question: Question, view: GuardedView, way: Way, priors: Floats) -> Floats:
    """Return what each prior's standard error adds to the plan's, on a grid; 0 where the threshold does not use it."""
    try:
        stated = np.asarray(question.prior_error)
        errors = np.broadcast_to(stated, priors.shape) / view.unit.span
        right = stated.dtype.kind in "fiu" and bool((np.isfinite(errors) & (errors >= 0.0)).all())
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise InputError(
            "prior_error must be standard errors, 0 or more, one for each prior; got "
            f"{question.prior_error!r}; nothing was asked"
        )
    constant = way.name == "check" and question.tolerance is None and way.certificate.threshold_sds
    if not constant or not errors.any():
        return np.zeros(len(priors))
    ratios = way.certificate.sd_ratio(priors)
    plans = way.certificate.prior_error or view.prior_error * ratios
    rows = 0 if question.X_train is None else length_of(question.X_train)
    if isinstance(rows, int) and rows:  # stratified folds do not show how far the rows' class shares are off
        errors = np.maximum(errors, view.row_error / math.sqrt(rows) * ratios * (errors > 0.0))
    more = np.sqrt(np.maximum(np.minimum(errors, 1.0) ** 2 - plans**2, 0.0))
    return np.asarray(np.ceil(more * _ERRORS) / _ERRORS)


def _limits(tolerances: Floats | None, beyond: Floats) -> list[int]:
    """Return a number for each question that tells apart questions with the same subject and prior."""
    if tolerances is None:
        return [round(one * _ERRORS) << _APART for one in beyond.tolist()]
    return [tolerance_unit(one) for one in tolerances.tolist()]


def raise_failures(found: Sequence[Any]) -> None:
    """Raise the failures: the error of one question, or for several an error that holds all answers."""
    failures = [one for one in found if isinstance(one, ModelError)]
    if not failures:
        return
    if len(found) == 1:
        raise failures[0]
    raise ModelError(
        f"the model or metric failed on the holdout for {len(failures)} of {len(found)} entries; its words are "
        "withheld, because they may quote the holdout; each failure is a fact about the holdout and is paid for once; "
        "any other answers are in `answers` of this error, with None for each failure, and in history()",
        [None if isinstance(one, ModelError) else one for one in found],
    )
