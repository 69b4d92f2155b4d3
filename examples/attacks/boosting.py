"""The boosting attack: the majority of lucky random votes looks better than it is."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from attacks.guard_like import GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult
from attacks.truth import Truth, whole
from attacks.votes import Votes
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["boosting_attack"]


def boosting_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "accuracy",
    questions: int = 400,
    keep: Literal["better", "not worse"] = "better",
    reverse: bool = False,
    claim: float | None = None,
    seed: int = 0,
) -> AttackResult:
    """Ask about random votes, then submit the majority of those that scored well.

    Against exact scores of n fair labels the majority errs on ``Phi(-sqrt(k / (pi n)))`` of the rows after k votes, on
    fresh ones on one half; with `reverse`, on ``Phi(-sqrt(2 k / (pi n)))``.

    Parameters
    ----------
    holdout : GuardLike
        What is attacked.
    rows : int
        Its rows n.
    truth : callable or array-like of shape (rows,)
        Population score of predictions, or labels of fresh rows to score them on.
    metric : str or Metric
        What it measures; labels are 0 and 1.
    questions : int
        Random votes k; the majority is one question more.
    keep : {"better", "not worse"}
        Votes that join the majority: those that scored better than chance, or all that did not score worse, as
        published. Where answers are rounded the first is the stronger attack.
    reverse : bool
        Whether votes that scored worse than chance join the majority, reversed.
    claim : float, optional
        Prior of the majority; by default what is expected of it if labels are coins.
    seed : int
        Of the votes.

    Returns
    -------
    AttackResult
        Its details: `kept`, the votes in the majority.

    Raises
    ------
    InputError
        If a number is out of its range or the metric has no classes.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions", section 4.

    Examples
    --------
    >>> from attacks import PlainHoldout, coin_truth
    >>> labels = np.random.default_rng(0).integers(0, 2, 1_000)
    >>> attack = boosting_attack(PlainHoldout(labels), rows=1_000, truth=coin_truth(1_000), questions=100)
    >>> attack.overfit > 0.04
    True
    """
    if keep not in {"better", "not worse"}:
        raise InputError(f"keep must be 'better' or 'not worse'; got {keep!r}; nothing was asked")
    asked = Questions(holdout, truth, metric, rows=rows)
    count = whole("questions", questions, least=1)
    votes = Votes(asked.metric, whole("rows", rows, least=2), np.random.default_rng(seed))
    tried = votes.draw(count)
    chances = votes.chances(tried)
    with asked:
        asked.ask_many(tried, chances)
    gains = asked.sign * (
        np.array([answer.value for answer in asked.answers]) - chances[: len(asked.answers)]
    )
    kept = tried[: len(gains)][gains > 0.0 if keep == "better" else gains >= 0.0]
    if reverse:
        kept = np.concatenate([kept, votes.reverse(tried[: len(gains)][gains < 0.0])])
    if not len(kept):
        kept = tried
    final = votes.majority(kept)
    with asked:
        asked.ask_and_submit(final, prior=votes.chance(final) if claim is None else claim)
    return asked.result("boosting", {"kept": float(len(kept))})
