"""Private selection with a random number of runs: the number's exact law, and the run that is published."""

import math
from collections import Counter

import mpmath
import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from mechanisms.accounting.repeated import COMMON_LAWS, best_of, border, run_probabilities
from mechanisms.selection.selection_laws import Scripted, is_rejected

from reusable_holdout.mechanisms import RandomWords, private_selection
from reusable_holdout.mechanisms.accounting import Repetitions
from reusable_holdout.mechanisms.samplers.random_words import Digits
from reusable_holdout.mechanisms.selection import private_selection as module
from reusable_holdout.mechanisms.selection.private_selection import _passed, draw_repetitions


def listed(*words):
    """Return words that a test lists, then zeros."""
    return Scripted(words=[*words, *[0] * 9])


def drawn(law, *words):
    return draw_repetitions(law, listed(*words))


@for_each("law", [*COMMON_LAWS, Repetitions(mean=2.0, shape=1e-12), Repetitions(mean=1.0, shape=2.0)])
def test_the_number_of_runs_is_where_the_distribution_function_passes_the_digits(law):
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
            tell = [_passed(law, Digits(listed(number))) for number in sides]
            assert tell == [runs, None, runs + 1]  # no more digits than it takes


@pytest.mark.long(*MECHANISMS)
@for_each("law", [Repetitions(mean=4.0), Repetitions(mean=5.0, shape=math.inf)])
def test_the_published_run_has_the_law_of_the_best(law):
    """Randomized response with a border, run as an algorithm, against the exact law and a neighbour's."""
    laws, counts = border(2.0, rare=0.2), Counter()
    for seed in range(3000):
        rng = np.random.default_rng([7, seed])

        def run(candidate, epsilon, rng=rng):
            outcome = int(rng.choice(3, p=laws[0]))
            return outcome, float(outcome)

        best = private_selection(["only"], run, repetitions=law, epsilon=1.0, seed=seed)
        counts["no run" if best is None else best.found] += 1
    for one, wrong in zip(laws, (False, True), strict=True):
        expected = {outcome: float(p) for outcome, p in enumerate(best_of(law, one))}
        if law.poisson:
            expected["no run"] = 1 - math.fsum(expected.values())
        assert is_rejected(counts, expected) is wrong


def test_each_run_is_for_a_random_candidate_at_its_share_and_the_best_is_published(monkeypatch):
    law, asked = Repetitions(mean=50.0), []
    monkeypatch.setattr(module, "draw_repetitions", lambda *_: 40)

    def run(candidate, epsilon):
        asked.append((candidate, epsilon))
        return candidate * 2, {"a": 0.5, "b": math.nan, "c": 2.0}[candidate]

    best = private_selection("abc", run, repetitions=law, epsilon=1.0, seed=1)
    assert {epsilon for _, epsilon in asked} == {law.epsilon_each(1.0)}
    assert len(asked) == 40
    assert {candidate for candidate, _ in asked} == set("abc")
    assert best is not None
    assert (best.index, best.found, best.score) == (2, "cc", 2.0)


def test_of_equal_runs_the_first_is_published_and_no_number_is_the_worst(monkeypatch):
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


def test_without_a_run_there_is_nothing(monkeypatch):
    monkeypatch.setattr(module, "draw_repetitions", lambda *_: 0)
    law = Repetitions(mean=0.5, shape=math.inf)
    assert private_selection([0], lambda *_: (1, 1.0), repetitions=law, epsilon=1.0) is None


def test_a_seed_gives_the_same_number_and_candidates_again():
    law = Repetitions(mean=9.0)
    draws = [draw_repetitions(law, RandomWords(seed)) for seed in range(30)]
    assert draws == [draw_repetitions(law, RandomWords(seed)) for seed in range(30)]
    assert len(set(draws)) > 5
