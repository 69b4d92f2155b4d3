"""The yardstick of naive reuse is what the attack does."""

import numpy as np
import pytest
from long_tests import VALIDITY

from reusable_holdout.certainty import majority_attack_gain


@pytest.mark.long(*VALIDITY)
@pytest.mark.parametrize(("rows", "queries"), [(1_000, 100), (2_000, 501)])
def test_the_attack_gains_what_the_formula_says(rows, queries):
    rng = np.random.default_rng(0)
    gains = []
    for _ in range(200):
        agreement = rng.choice([-1, 1], size=(queries, rows))  # with coin-flip labels
        oriented = agreement * np.where(agreement.sum(axis=1) >= 0, 1, -1)[:, None]
        votes = oriented.sum(axis=0)
        gains.append(np.mean(votes > 0) + np.mean(votes == 0) / 2 - 0.5)
    error = 6.2 * np.std(gains) / np.sqrt(len(gains))  # false alarm below 1e-9
    gain = majority_attack_gain(rows=rows, queries=queries)
    assert abs(np.mean(gains) - gain) < error + 0.01 * gain  # the formula takes votes as normal
    assert abs(np.mean(gains) - 1.3 * gain) > error


def test_no_questions_gain_nothing_and_more_gain_more():
    gains = [majority_attack_gain(rows=1_000, queries=queries) for queries in (0, 1, 10, 1_000, 10**9)]
    assert (gains[0], gains, gains[-1]) == (0.0, sorted(gains), pytest.approx(0.5))
