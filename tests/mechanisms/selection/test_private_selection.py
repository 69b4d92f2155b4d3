"""Private selection with a random number of runs: the number's exact law, and what is published."""

from __future__ import annotations

import decimal
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.repeated import best_of, border, run_probabilities
from scipy import stats

from reusable_holdout.errors import InputError
from reusable_holdout.mechanisms import RandomWords, private_selection
from reusable_holdout.mechanisms.accounting import Repetitions
from reusable_holdout.mechanisms.samplers.digits import Digits
from reusable_holdout.mechanisms.selection import private_selection as module
from reusable_holdout.mechanisms.selection.private_selection import _passed, draw_repetitions

LAWS = [
    Repetitions(mean=4.0, shape=1.0),
    Repetitions(mean=4.0),
    Repetitions(mean=12.0, shape=0.5),
    Repetitions(mean=3.0, shape=-0.5),
    Repetitions(mean=2.0, shape=1e-12),
    Repetitions(mean=1.0, shape=2.0),
    Repetitions(mean=5.0, shape=math.inf),
]


class Listed:
    """Gives listed words, then zeros."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def take(self, count: int) -> np.ndarray[Any, Any]:
        assert count == 1
        return np.array([self.words.pop(0) if self.words else 0], dtype=np.uint64)


def drawn(law: Repetitions, *words: int) -> int:
    return draw_repetitions(law, Listed(*words))  # type: ignore[arg-type]


@for_each("law", LAWS)
def test_the_number_of_runs_is_where_the_distribution_function_passes_the_digits(law: Repetitions) -> None:
    """Both sides of each step: as many digits as it takes, so that the chances are exact."""
    with mpmath.workdps(80):
        below, chances = mpmath.mpf(0), run_probabilities(law)
        for runs, chance in list(chances.items())[:12]:
            if not chance:
                continue
            below += chance
            if below >= 1 - mpmath.mpf("1e-14"):
                break
            edge = int(mpmath.floor(below * mpmath.mpf(2) ** 128))
            first, second = divmod(edge, 2**64)
            for lead, wanted in ((-(2**40), runs), (2**40, runs + 1)):
                assert drawn(law, *divmod(edge + lead, 2**64)) == wanted
            assert drawn(law, first - 1, second) == runs
            assert drawn(law, first + 1, second) == runs + 1
            sides = [(edge - 2**40) // 2**64 - 1, first, (edge + 2**40) // 2**64 + 1]
            tell = [_passed(law, Digits(Listed(number))) for number in sides]  # type: ignore[arg-type]
            assert tell == [runs, None, runs + 1]  # no more digits than it takes


@for_each("law", LAWS)
def test_the_last_digits_of_all_are_drawn_too(law: Repetitions) -> None:
    least = 0 if law.poisson else 1
    assert drawn(law, 0, 0) == least
    assert drawn(law, 2**64 - 1, 2**64 - 1, 7) >= least


HALF = decimal.Decimal("0.5")


def quarter_and(errors: float) -> decimal.Decimal:
    """A quarter, and so many times the square of 2**-64, exactly."""
    with decimal.localcontext(prec=200):
        return decimal.Decimal("0.25") + decimal.Decimal(errors) / 2**128


@for_each(
    ("beyond", "next_to", "told"),
    [
        (0, 0, None),  # the first chance reaches to the upper end of the digits, which is too near to tell
        (1, 0, 7),  # as far beyond it as the sum may err
        (1, -(2.0**-20), None),
        (-1, 0, None),
        (-1, -1, None),
    ],
)
def test_digits_tell_where_a_sum_passes_them_by_what_it_may_err(
    beyond: int, next_to: float, told: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The upper end is a quarter; the sum is that and so many errors, which are the width squared."""
    monkeypatch.setattr(module, "_law", lambda _: iter([(7, quarter_and(beyond + next_to)), (8, HALF)]))
    assert _passed(LAWS[0], Digits(Listed(2**62 - 1))) == told  # type: ignore[arg-type]


@for_each(("behind", "told"), [(0, None), (-1, 8), (-2, 8)])
def test_digits_are_above_a_sum_that_is_below_them_by_what_it_may_err(
    behind: int, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_law", lambda _: iter([(7, quarter_and(behind)), (8, HALF)]))
    assert _passed(LAWS[0], Digits(Listed(2**62))) == told  # type: ignore[arg-type]


@pytest.mark.long(*MECHANISMS)
@for_each("law", [Repetitions(mean=4.0), Repetitions(mean=5.0, shape=math.inf)])
def test_what_is_published_has_the_law_of_the_best_run(law: Repetitions) -> None:
    """Randomized response with a border, run as an algorithm: chi-squared against the exact law and a neighbour's."""
    samples, laws = 3000, border(2.0, rare=0.2)
    counts = [0] * 4  # of three outcomes, and of no run
    for seed in range(samples):
        rng = np.random.default_rng([7, seed])

        def run(candidate: str, epsilon: float, rng: np.random.Generator = rng) -> tuple[int, float]:
            outcome = int(rng.choice(3, p=laws[0]))
            return outcome, float(outcome)

        best = private_selection(["only"], run, repetitions=law, epsilon=1.0, seed=seed)
        counts[3 if best is None else best.found] += 1
    distances = []
    for one in laws:
        expected = [float(p) for p in best_of(law, one)]
        expected.append(1 - math.fsum(expected))
        distances.append(
            sum(
                (n - samples * p) ** 2 / (samples * p)
                for n, p in zip(counts, expected, strict=True)
                if p > 1e-9
            )
        )
    limit = stats.chi2.isf(1e-9, df=3)
    assert distances[0] <= limit < distances[1]


def test_each_run_is_for_a_random_candidate_at_its_share_and_the_best_is_published(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    law, asked = Repetitions(mean=50.0), []
    monkeypatch.setattr(module, "draw_repetitions", lambda *_: 40)

    def run(candidate: str, epsilon: float) -> tuple[str, float]:
        asked.append((candidate, epsilon))
        return candidate * 2, {"a": 0.5, "b": math.nan, "c": 2.0}[candidate]

    best = private_selection("abc", run, repetitions=law, epsilon=1.0, seed=1)
    assert {epsilon for _, epsilon in asked} == {law.epsilon_each(1.0)}
    assert len(asked) == 40
    assert {candidate for candidate, _ in asked} == set("abc")
    assert best is not None
    assert (best.index, best.found, best.score) == (2, "cc", 2.0)


def test_of_equal_runs_the_first_is_published_and_no_number_is_the_worst(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "draw_repetitions", lambda *_: 4)
    law = Repetitions(mean=4.0)
    for scores, wanted in [
        ((1.0, 3.0, 3.0, 2.0), 1),
        ((math.nan, -9.0, -9.0, math.nan), 1),
        ((math.nan,) * 4, 0),
    ]:
        runs = iter(enumerate(scores))
        best = private_selection([0], lambda *_, runs=runs: next(runs), repetitions=law, epsilon=1.0)
        assert best is not None
        assert best.found == wanted


def test_without_a_run_there_is_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "draw_repetitions", lambda *_: 0)
    law = Repetitions(mean=0.5, shape=math.inf)
    assert private_selection([0], lambda *_: (1, 1.0), repetitions=law, epsilon=1.0) is None


@for_each(
    "bad", [{"candidates": []}, {"epsilon": 0.0}, {"epsilon": math.inf}, {"delta": 1.0}, {"delta": -0.1}]
)
def test_what_is_out_of_range_is_refused_and_nothing_is_run(bad: dict[str, Any]) -> None:
    def run(candidate: object, epsilon: float) -> tuple[object, float]:
        raise AssertionError("it ran")

    good = {"candidates": [1], "algorithm": run, "repetitions": Repetitions(mean=9.0), "epsilon": 1.0}
    with pytest.raises(InputError):
        private_selection(**(good | bad))


def test_a_seed_gives_the_same_number_and_candidates_again() -> None:
    law = Repetitions(mean=9.0)
    draws = [draw_repetitions(law, RandomWords(seed)) for seed in range(30)]
    assert draws == [draw_repetitions(law, RandomWords(seed)) for seed in range(30)]
    assert len(set(draws)) > 5
