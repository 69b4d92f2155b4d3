"""The flip attacks: change a label or two, and keep what is accepted."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from attacks.guard_like import GuardLike
from attacks.questions import Questions
from attacks.result import AttackResult
from attacks.truth import Truth, whole
from attacks.votes import Votes
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import Metric

__all__ = ["flip_attack"]


def flip_attack(
    holdout: GuardLike,
    *,
    rows: int,
    truth: Truth | ArrayLike,
    metric: str | Metric = "accuracy",
    questions: int = 1_000,
    flips: Literal[1, 2] = 2,
    settle: bool = True,
    lead: float = 0.0,
    seed: int = 0,
) -> AttackResult:
    """Flip labels of the best submission so far, and keep the flips if the answer got better.

    Against exact scores single flips know every label after n questions. Pairs drawn from all rows leave a share
    ``1/(2 + 2 q/n)`` of wrong labels after q questions, for a pair is kept if both were wrong; pairs of rows that are
    not settled leave next to none after n.

    Parameters
    ----------
    holdout, rows, truth, metric
        As for `boosting_attack`.
    questions : int
        Submissions at most, the first included.
    flips : {1, 2}
        Rows that are flipped at a time.
    settle : bool
        Whether rows are left alone once an answer got better or worse with them; then the attack ends when no more
        can be learnt. Otherwise rows are drawn from all of them for ever, as published.
    lead : float
        How much better than the last accepted answer the stated prior is, in the metric's unit; the last accepted
        answer itself by default.
    seed : int
        Of the first submission and the order of the rows.

    Returns
    -------
    AttackResult
        Its details: `accepted`, the flips that were kept. The final submission is the last accepted one.

    Raises
    ------
    InputError
        If a number is out of its range or the metric has no classes.

    References
    ----------
    .. [1] Blum and Hardt (2015), "The Ladder: a reliable leaderboard for machine learning competitions".

    Examples
    --------
    >>> from attacks import PlainHoldout, coin_truth
    >>> labels = np.random.default_rng(0).integers(0, 2, 100)
    >>> attack = flip_attack(PlainHoldout(labels), rows=100, truth=coin_truth(100), flips=1, questions=101)
    >>> attack.answer, attack.truth
    (1.0, 0.5)
    """
    if flips not in {1, 2}:
        raise InputError(f"flips must be 1 or 2; got {flips!r}; nothing was asked")
    asked = Questions(holdout, truth, metric, rows=rows)
    rng = np.random.default_rng(seed)
    votes = Votes(asked.metric, whole("rows", rows, least=2), rng)
    count = whole("questions", questions, least=1)
    best, accepted, loose = votes.draw(1)[0], 0, _Loose(rows, rng)
    with asked:
        first = asked.ask(best, prior=votes.chance(best))
        value = first.value
        asked.submit(best, value)
        for _ in range(count - 1):
            if loose.count < flips + (flips == 2):  # two rows that do not differ together stay unknown
                break
            places = loose.draw(flips)
            tried = _flipped(votes, best, places)
            answer = asked.ask(tried, prior=value + asked.sign * lead).value
            if settle and answer != value:
                loose.settle(places)
            if asked.better(answer, value):
                best, value, accepted = tried, answer, accepted + 1
                asked.submit(best, value)
    return asked.result("single flip" if flips == 1 else "pair flip", {"accepted": float(accepted)})


def _flipped(votes: Votes, predictions: NDArray[Any], places: NDArray[np.int64]) -> NDArray[Any]:
    tried = predictions.copy()
    tried[places] = votes.reverse(predictions[places])
    return tried


class _Loose:
    """Rows that are not settled; drawn in constant time by keeping them in front."""

    def __init__(self, rows: int, rng: np.random.Generator) -> None:
        self.count, self._rng = rows, rng
        self._order = np.arange(rows)

    def draw(self, size: int) -> NDArray[np.int64]:
        """Different loose rows, which come to stand last among them."""
        for place in range(self.count - 1, self.count - 1 - size, -1):
            other = int(self._rng.integers(0, place + 1))
            self._order[[place, other]] = self._order[[other, place]]
        return self._order[self.count - size : self.count].copy()

    def settle(self, places: NDArray[np.int64]) -> None:
        """Leave out the rows drawn last."""
        self.count -= len(places)
