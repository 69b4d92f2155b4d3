"""How an attack's submissions are put to a guard: by checks, with tolerances of their own, or in all ways there are.

A way has the guard's settings that it needs, a `holdout` that an attack can ask, and after the attack it says whether
every interval that was released holds. Another way to ask is another entry of `WAYS`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from attacks import AttackResult, GuardLike
from numpy.typing import NDArray

from reusable_holdout import Answer, ReusableHoldout
from reusable_holdout.errors import Halted, InputError, PlanError

__all__ = ["WAYS", "Checks", "Mixed", "Tolerances", "Way"]

EXPECTED = {
    "accuracy": 0.5,
    "average_precision": 0.5,
    "balanced_accuracy": 0.5,
    "roc_auc": 0.5,
    "brier": 0.3125,
    "log_loss": 0.837,
}  # of votes on coins
MOST_TOGETHER = 8  # submissions of one batch, or candidates of one choice
FINALISTS = 3


class Way(Protocol):
    """One way to ask."""

    settings: ClassVar[Mapping[str, Any]]

    def __init__(self, guard: Any, *, seed: int) -> None: ...

    @property
    def holdout(self) -> GuardLike:
        """What the attack asks."""
        ...

    def covered(self, result: AttackResult) -> bool:
        """Ask what is asked after the attack, and say whether all intervals of the run hold."""
        ...

    @property
    def told(self) -> Counter[str]:
        """Reveals, choices, slices, finals and tolerances of their own that were answered."""
        ...


class Checks:
    """Nothing but what the attacks ask by themselves."""

    settings: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, guard: Any, *, seed: int) -> None:
        del seed
        self.holdout, self.told = guard, Counter[str]()

    def covered(self, result: AttackResult) -> bool:
        """Whether all intervals hold."""
        return result.covered is True


class Tolerances(Checks):
    """Each question states a tolerance of its own, as coins decide; none where the guard could not keep it."""

    def __init__(self, guard: ReusableHoldout, *, seed: int) -> None:
        super().__init__(guard, seed=seed)
        self._guard, self._rng = guard, np.random.default_rng([73, seed])
        self.holdout = self

    def evaluate(self, subject: Any, *, prior: Any) -> Any:
        """Answer about one submission, or each of several."""
        plan = self._guard.plan
        shape = len(subject) if isinstance(subject, list) else None
        stated = plan.tolerance * self._rng.choice([0.3, 0.5, 0.7, 1.0, 1.5], size=shape)
        try:
            answers = self._guard.evaluate(
                subject, prior=prior, tolerance=np.minimum(stated, plan.upper - plan.lower)
            )
        except InputError:
            return self._guard.evaluate(subject, prior=prior)
        self.told["tolerance"] += 1 if shape is None else shape
        return answers


class Released(NamedTuple):
    """An interval that was told of an earlier submission, by its place."""

    submission: int
    low: float
    high: float


class Mixed:
    """Each submission is asked about by a check, a batch, a reveal, a choice or on a slice, as coins decide.

    A choice is among the submission and two earlier ones, or among several of those that come together. Of a submission
    that it does not take the attack is told that it is no better than the winner. The slice is half of the rows, drawn
    by coins, so that the population value of a submission on it is the same; it is opened with the first question about
    it, by `guard.on`. Reveals, choices and slices that the guard would refuse are asked as checks. At the end comes a
    final: of the attack's last submission and two earlier ones.

    Parameters
    ----------
    guard : ReusableHoldout
    seed : int
        Of the coins; it decides, too, whether every tenth, third or second submission is no check.
    """

    settings: ClassVar[Mapping[str, Any]] = {"reveals": 10, "choices": (MOST_TOGETHER,) * 6}

    def __init__(self, guard: ReusableHoldout, *, seed: int) -> None:
        self._guard, self._rng = guard, np.random.default_rng([72, seed])
        self._rate = (0.1, 0.3, 0.5)[seed // 2 % 3]
        self._asked: list[NDArray[Any]] = []
        self._priors: list[float] = []  # what is believed of them now
        self._released: list[Released] = []
        self._threshold = 0.0  # of the last check: where an attack believes the boundary to be
        self._slice: ReusableHoldout | None = None
        self._sliced = False  # whether it was tried
        self.told = Counter[str]()

    @property
    def holdout(self) -> GuardLike:
        """What an attack asks: itself."""
        return self

    def evaluate(self, subject: Any, *, prior: Any) -> Any:
        """Answer about one submission, or several that do not depend on each other, some of them together."""
        if isinstance(subject, list):
            return self._several(subject, prior)
        how, predictions = self._how(3), subject
        if how == "reveal":
            answer = self._revealed(predictions, prior)
        elif how == "choose" and self._asked:
            earlier = list(range(max(0, len(self._asked) - 2), len(self._asked)))
            return self._chosen([predictions], [prior], earlier)[0]
        elif how == "slice" and (part := self._on_a_slice(len(predictions))):
            answer = self._sliced_answer(part, predictions, prior)
        else:
            answer = self._guard.evaluate(predictions, prior=prior)
            self._threshold = answer.threshold
        return self._record(predictions, answer)

    def _several(self, predictions: list[Any], priors: Any) -> list[Answer]:
        answers: list[Answer] = []
        try:
            while len(answers) < len(predictions):
                count = int(self._rng.integers(1, MOST_TOGETHER + 1))
                part = slice(len(answers), len(answers) + count)
                answers += self._part(predictions[part], list(priors[part]))
        except Halted as halt:
            halt.answers = answers + [
                self._record(one, answer)
                for one, answer in zip(predictions[len(answers) :], halt.answers, strict=False)
            ]
            raise
        return answers

    def _part(self, predictions: list[Any], priors: list[float]) -> list[Answer]:
        """Answer some together, or the first alone."""
        how = self._how(len(predictions))
        if how == "reveal":
            return [self._record(predictions[0], self._revealed(predictions[0], priors[0]))]
        if how == "slice" and (half := self._on_a_slice(len(predictions[0]))):
            return [self._record(predictions[0], self._sliced_answer(half, predictions[0], priors[0]))]
        if how == "choose" and len(predictions) > 1:
            return self._chosen(predictions, priors, [])
        answers = self._guard.evaluate(predictions, prior=priors)
        self._threshold = answers[-1].threshold
        return [self._record(one, answer) for one, answer in zip(predictions, answers, strict=True)]

    def _how(self, candidates: int) -> str:
        """Draw how to ask; a check where nothing else would be answered."""
        if self._rng.random() >= self._rate:
            return "check"
        how = ("reveal", "choose", "slice")[self._rng.integers(3)]
        if how == "slice":
            return how
        return how if self._guard.price(how, candidates=candidates).allowed else "check"

    def _sliced_answer(self, half: ReusableHoldout, predictions: Any, prior: float) -> Answer:
        answer = half.evaluate(predictions, prior=prior)
        self.told["slice"] += 1
        return answer._replace(threshold=self._threshold)

    def _on_a_slice(self, rows: int) -> ReusableHoldout | None:
        """Guard of half of the rows; None if the plan leaves no room for what must be told for it."""
        if not self._sliced:
            self._sliced = True
            half = self._rng.random(rows) < 0.5
            try:
                self._slice = self._guard.on(sample_weight=half, allow={"vacuous"})
            except (InputError, PlanError):
                self._slice = None
        return self._slice

    def _record(self, predictions: Any, answer: Answer) -> Answer:
        self._asked.append(predictions)
        self._priors.append(answer.value)
        return answer

    def _revealed(self, predictions: Any, prior: float) -> Answer:
        answer = self._guard.reveal(predictions, prior=prior)
        self.told["reveal"] += 1
        return answer._replace(threshold=self._threshold)

    def _chosen(self, new: list[Any], priors: list[float], earlier: list[int]) -> list[Answer]:
        """Choose among new submissions and earlier ones; what is told of the new."""
        candidates = new + [self._asked[place] for place in earlier]
        believed = priors + [self._priors[place] for place in earlier]
        choice = self._guard.choose(candidates, believed)
        self.told["choose"] += 1
        metric, winner = self._guard.metric, choice.answer._replace(threshold=self._threshold)
        worse = min if metric.greater_is_better else max
        low, high = (
            (metric.lower, choice.others) if metric.greater_is_better else (choice.others, metric.upper)
        )
        answers = [
            winner
            if place == choice.index
            else winner._replace(value=worse(prior, winner.value), low=low, high=high, prior=prior)
            for place, prior in enumerate(believed)
        ]
        for place, answer in zip(earlier, answers[len(new) :], strict=True):
            self._priors[place] = answer.value
            self._released.append(Released(place, answer.low, answer.high))
        return [self._record(one, answer) for one, answer in zip(new, answers, strict=False)]

    def covered(self, result: AttackResult) -> bool:
        """Ask for the final; whether its intervals, all answers' and those told of earlier submissions hold."""
        held = result.covered is True and all(
            low <= result.truths[place] <= high for place, low, high in self._released
        )
        if result.final is None:
            return held
        finalists, truths = [result.final], [result.truth]
        for place in self._rng.integers(0, len(self._asked), FINALISTS - 1).tolist() if self._asked else []:
            if not any(np.array_equal(self._asked[place], other) for other in finalists):
                finalists.append(self._asked[place])
                truths.append(float(result.truths[place]))
        count = int(self._rng.integers(1, len(finalists) + 1))
        answers = self._guard.final(finalists[:count])
        self.told["final"] += 1
        return held and all(
            answer.low <= truth <= answer.high for answer, truth in zip(answers, truths, strict=False)
        )


WAYS: dict[str, type[Way]] = {"checks": Checks, "tolerances": Tolerances, "mixed": Mixed}
