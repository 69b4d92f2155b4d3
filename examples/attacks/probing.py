"""Attacks on the budget: priors at the boundary, where a charge tells most; and absurd ones, that spend it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attacks.guard_like import AnswerLike, GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult
from attacks.truth import Truth, whole
from attacks.votes import Votes
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["budget_burning_attack", "threshold_probing_attack"]


def threshold_probing_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "accuracy",
    questions: int = 400,
    margin: float = 0.0,
    edge: float = 0.9,
    threshold: float | None = None,
    spare: int = 1,
    seed: int = 0,
) -> AttackResult:
    """State priors so far off that a question is charged if and only if its vote is good, and submit what was learnt.

    Each question then tells one bit whether it is charged or not: no other analyst learns as much from a charge. The
    final submission is claimed to be as good as an honest holdout lets pass.

    Parameters
    ----------
    holdout : GuardLike
        What is attacked. Where its answers have a `threshold`, the last one is where the boundary is believed to be.
    rows, truth, metric
        As for `boosting_attack`.
    questions : int
        Random votes asked about; the final submission is one question more.
    margin : float
        A vote is good if it scores better than chance by this much, in the metric's unit. At 0 half of them are, and
        the others join the majority reversed; larger margins make charges rare and each one telling.
    edge : float
        How far beyond chance the final prior is, in thresholds.
    threshold : float, optional
        Where the boundary is believed to be, in the metric's unit, if answers do not say; 0 by default.
    spare : int
        Charges that are left for the final submission, where answers say how many there are.
    seed : int
        Of the votes.

    Returns
    -------
    AttackResult
        Its details: `good`, the votes found to be good.

    Raises
    ------
    InputError
        If a number is out of its range or the metric has no classes.

    Examples
    --------
    >>> from attacks import PlainHoldout, coin_truth
    >>> labels = np.random.default_rng(0).integers(0, 2, 1_000)
    >>> attack = threshold_probing_attack(PlainHoldout(labels), rows=1_000, truth=coin_truth(1_000), questions=100)
    >>> attack.overfit > 0.05
    True
    """
    if not (np.isfinite(margin) and np.isfinite(edge)):
        raise InputError(f"margin and edge must be finite; got {margin!r} and {edge!r}; nothing was asked")
    asked = Questions(holdout, truth, metric, rows=rows)
    votes = Votes(asked.metric, whole("rows", rows, least=2), np.random.default_rng(seed))
    boundary, good = 0.0 if threshold is None else threshold, 0
    kept: list[NDArray[Any]] = []
    with asked:
        for _ in range(whole("questions", questions, least=1)):
            vote = votes.draw(1)[0]
            least = votes.chance(vote) + asked.sign * margin
            prior = asked.within(least - asked.sign * boundary)
            answer = asked.ask(vote, prior=prior)
            boundary = _boundary(answer, boundary)
            if (answer.charged or answer.value != prior) and asked.better(answer.value, least):
                kept.append(vote)
                good += 1
            elif margin <= 0.0:
                kept.append(votes.reverse(vote))
            if getattr(answer, "charges_left", spare + 1) <= spare:
                break
    final = votes.majority(np.array(kept) if kept else votes.draw(1))
    with asked:
        asked.ask_and_submit(final, prior=votes.chance(final) + asked.sign * edge * boundary)
    return asked.result("threshold probing", {"good": float(good)})


def budget_burning_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "accuracy",
    questions: int = 400,
    others: int = 10,
    seed: int = 0,
) -> AttackResult:
    """State absurd priors until the budget is spent, submit the majority of the lucky votes, and see what others get.

    No guard can answer others when its budget is gone: it can but say so, and what it had answered must stay valid.

    Parameters
    ----------
    holdout, rows, truth, metric
        As for `boosting_attack`.
    questions : int
        Absurd questions at most.
    others : int
        Honest questions, with priors at chance, that others ask afterwards.
    seed : int
        Of all votes.

    Returns
    -------
    AttackResult
        Its details: `burnt`, the absurd questions that were answered; `others_answered`.

    Raises
    ------
    InputError
        If a number is out of its range or the metric has no classes.

    Examples
    --------
    >>> from attacks import PlainHoldout, coin_truth
    >>> labels = np.random.default_rng(0).integers(0, 2, 1_000)
    >>> attack = budget_burning_attack(PlainHoldout(labels), rows=1_000, truth=coin_truth(1_000), questions=100)
    >>> attack.details
    {'burnt': 100.0, 'others_answered': 10.0}
    """
    asked = Questions(holdout, truth, metric, rows=rows)
    votes = Votes(asked.metric, whole("rows", rows, least=2), np.random.default_rng(seed))
    honest = votes.draw(whole("others", others, least=0))
    kept: list[NDArray[Any]] = []
    with asked:
        for place in range(whole("questions", questions, least=1)):
            vote = votes.draw(1)[0]
            absurd = asked.metric.upper if place % 2 else asked.metric.lower
            answer = asked.ask(vote, prior=absurd)
            kept.append(vote if asked.better(answer.value, votes.chance(vote)) else votes.reverse(vote))
    burnt = len(asked.answers)
    final = votes.majority(np.array(kept) if kept else votes.draw(1))
    with asked:
        asked.ask_and_submit(final, prior=votes.chance(final))
    before = len(asked.answers)
    for vote in honest:
        with asked:
            asked.ask(vote, prior=votes.chance(vote))
    details = {"burnt": float(burnt), "others_answered": float(len(asked.answers) - before)}
    return asked.result("budget burning", details)


def _boundary(answer: AnswerLike, believed: float) -> float:
    """Where the answer says the boundary is, if it does."""
    stated = getattr(answer, "threshold", None)
    return believed if stated is None else float(stated)
