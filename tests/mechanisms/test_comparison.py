"""Every row of the comparison beside the formula of its theorem, and the stream that is made of the first row."""

import math

import numpy as np
import pytest
from cases import for_each
from long_tests import MECHANISMS
from scipy import stats

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms import accounting, compare_mechanisms, tightest_stream
from reusable_holdout.mechanisms.sparse_vector.reach import reach_of, tail_of

ONE_STREAM, RESTARTS = "StandardSVT", "StandardSVT of one charge, restarted, optimal composition"


def deviations(charges, *, monotonic=False, answers=False):
    rows = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=charges, answers=answers, monotonic=monotonic)
    return {row.mechanism: row.comparison_sd for row in rows}


def law_of(row):
    return "exponential" if "exponential" in row.mechanism else "laplace"


def standard(epsilon, charges, answers, *, monotonic):
    """Return the scales of one threshold and of queries at the best division of the budget that answers leave."""
    compared, moved = epsilon - answers, charges if monotonic else 2 * charges
    ratio = moved ** (2 / 3)
    answer = charges / answers if answers else 0.0
    return (1 + ratio) / compared, moved * (1 + ratio) / (ratio * compared), answer


def expected(epsilon, delta, charges, *, answers, monotonic):
    name, part = ("NumericSparse", 8 / 9) if answers else ("Sparse", 1.0)
    share = epsilon / 9 if answers else 0.0

    def sparse(threshold, answer):
        return threshold, 2 * threshold, answer if answers else 0.0

    basic = 2 * charges / (part * epsilon)
    whole = standard(epsilon, charges, share, monotonic=monotonic)
    rows = {f"{name}, basic composition": sparse(basic, 9 * charges / epsilon)}
    if delta > 0:
        root = math.sqrt(32 * charges * math.log((2 if answers else 1) / delta))
        rows[f"{name}, advanced composition"] = sparse(root / (part * epsilon), 9 * root / (2 * epsilon))
        each = accounting.optimal_epsilon_each(epsilon=epsilon, count=charges, delta=delta)
        rows[f"{name}, optimal composition"] = sparse(2 / (part * each), 9 / each)
        restarted = standard(each, 1, each / 9 if answers else 0.0, monotonic=monotonic)
        rows[RESTARTS] = rows["StandardSVT of one charge, restarted, exponential noise"] = restarted
        budget = {"epsilon": epsilon, "delta": delta, "charges": charges}
        call = accounting.target_charging_epsilon_each(
            q=accounting.not_prior_q, mean=accounting.not_prior_mean, **budget
        )
        rows["target charging"] = 0.0, 1 / call, 1 / call
        if answers:
            released = accounting.optimal_epsilon_each(epsilon=share, count=charges, delta=delta)
            whole = (*whole[:2], min(whole[2], 1 / released))
    return rows | {ONE_STREAM: whole, "StandardSVT, exponential noise": whole}


@for_each("charges", [1, 3, 40])
@for_each("delta", [0.0, 1e-6])
@for_each("answers", [True, False])
@for_each("monotonic", [True, False])
@for_each("sensitivity", [1.0, 2.5])
def test_every_row_has_the_scales_of_its_theorem_and_the_deviation_of_both_noises(
    charges, delta, answers, monotonic, sensitivity
):
    """A Laplace variable's deviation is sqrt(2) scales, an exponential one's is one."""
    how = {"answers": answers, "monotonic": monotonic}
    rows = compare_mechanisms(epsilon=0.4, delta=delta, charges=charges, sensitivity=sensitivity, **how)
    wanted = expected(0.4, delta, charges, **how)
    assert {row.mechanism for row in rows} == set(wanted)
    for row in rows:
        scales = [sensitivity * scale for scale in wanted[row.mechanism]]
        assert [row.threshold, row.query, row.answer] == pytest.approx(scales, rel=1e-8)
        sd = 1.0 if law_of(row) == "exponential" else math.sqrt(2.0)
        assert row.comparison_sd == pytest.approx(sd * math.hypot(*scales[:2]))
        assert row.answer_sd == pytest.approx(math.sqrt(2.0) * scales[2])
        assert math.isnan(row.reach)
    assert [row.comparison_sd for row in rows] == sorted(row.comparison_sd for row in rows)


def test_one_stream_beats_restarts_for_few_charges_and_longer_for_monotonic_queries():
    for monotonic, few, many in ((False, 64, 67), (True, 115, 140)):
        for charges, better in ((few, True), (many, False)):
            found = deviations(charges, monotonic=monotonic)
            assert (found[ONE_STREAM] < found[RESTARTS]) is better
    found = deviations(400)
    assert found[RESTARTS] < 0.5 * found[ONE_STREAM]


def test_target_charging_is_tightest_from_about_thirty_charges_on_and_its_values_cost_nothing_more():
    for charges in (30, 50, 400):
        assert next(iter(deviations(charges, answers=True))) == "target charging"
    assert next(iter(deviations(1, answers=True))) != "target charging"
    with_values, without = deviations(20, answers=True), deviations(20, answers=False)
    assert with_values["target charging"] == without["target charging"]
    assert with_values[ONE_STREAM] > without[ONE_STREAM]


@for_each("law", ["laplace", "exponential"])
@for_each("scales", [(2.0, 3.0), (3.0, 3.0), (3.0, 2.0)])
def test_the_tail_of_two_noises_is_that_of_their_difference(law, scales):
    """Beside the convolution as an integral over the threshold's noise."""
    noises = [stats.laplace(0, s) if law == "laplace" else stats.expon(-s, s) for s in scales]
    noise = noises[0].ppf((np.arange(200_000) + 0.5) / 200_000)
    for distance in (0.5, 1.0, 4.0, 12.0):
        both = noises[1].sf(noise + distance) + noises[1].cdf(noise - distance)
        chance = tail_of(law, *scales, distance)
        assert chance == pytest.approx(float(both.mean()), rel=2e-3)
        assert reach_of(law, *scales, chance) == pytest.approx(distance, rel=1e-9)


def test_a_reach_fails_with_probability_beta_over_all_queries():
    given = {"epsilon": 0.4, "delta": 1e-6, "charges": 3, "answers": False}
    rows = compare_mechanisms(**given, queries=50, beta=0.2)
    for row in rows:
        tail = tail_of(law_of(row), row.threshold, row.query, row.reach)
        assert 50 * tail == pytest.approx(0.2, rel=1e-9)
    assert [row.reach for row in rows] == sorted(row.reach for row in rows)
    assert all(row.reach > 0 for row in compare_mechanisms(**given, queries=1))


GRID = [
    (charges, queries, delta)
    for charges in (1, 3, 30, 300)
    for queries in (None, 20, 10**5)
    for delta in (0.0, 1e-6)
]


@pytest.mark.long(*MECHANISMS)
@for_each(("charges", "queries", "delta"), GRID)
@for_each("monotonic", [False, True])
def test_the_tightest_stream_has_the_noise_of_the_first_row_and_no_row_less(
    charges, queries, delta, monotonic
):
    wish = {"epsilon": 0.7, "delta": delta, "charges": charges, "queries": queries, "monotonic": monotonic}
    best, *others = compare_mechanisms(answers=False, sensitivity=3.0, **wish)
    for row in others:
        assert best.comparison_sd <= row.comparison_sd if queries is None else best.reach <= row.reach
    stream = tightest_stream(5.0, sensitivity=3.0, seed=1, **wish)
    assert type(stream).__name__ in best.runs
    assert float(stream.scales.query) * stream.step == pytest.approx(best.query, rel=1e-4)
    assert float(stream.scales.threshold) * stream.step == pytest.approx(best.threshold, rel=1e-4)
    assert stream.charges_left == charges
    assert not stream.ask(-1e9)
    assert stream.ask(0.0, threshold=-1e9)


@for_each(
    ("name", "wish"),
    [
        ("StandardSVT", {"charges": 1}),
        ("StandardSVT", {"charges": 2, "delta": 1e-6, "queries": 9}),
        ("ConditionalStream", {"charges": 300, "delta": 1e-6}),
        ("Sparse", {"charges": 1, "delta": 1e-6, "monotonic": True}),
    ],
)
def test_the_tightest_stream_is_of_the_first_rows_kind(name, wish):
    stream = tightest_stream(5.0, **({"epsilon": 0.7} | wish))
    assert type(stream).__name__ == name
    spelt = {"delta": 0.0, "queries": None, "beta": 0.05, "monotonic": False, "sensitivity": 1.0}
    again = tightest_stream(5.0, **({"epsilon": 0.7} | spelt | wish))
    assert (again.scales, again.step) == (stream.scales, stream.step)


def test_every_row_names_the_classes_and_functions_that_draw_its_noise():
    for charges in (1, 4):
        for answers in (True, False):
            rows = compare_mechanisms(epsilon=1.0, delta=1e-6, charges=charges, queries=9, answers=answers)
            names = {name for row in rows for name in row.runs}
            assert all(hasattr(mechanisms, name) for name in names)
            assert {"StandardSVT", "retraversal", "TargetCharging", "IndividualCharging"} <= names
            assert ("AboveThreshold" in names) is (charges == 1 and not answers)
            assert ("NumericSparse" in names) is answers


@for_each("charges", [1, 4, 100])
def test_the_row_of_target_charging_is_the_noise_of_all_that_runs_it(charges):
    wish = {"epsilon": 1.0, "delta": 1e-6, "charges": charges}
    row = next(row for row in compare_mechanisms(**wish) if "TargetCharging" in row.runs)
    each = [
        mechanisms.TargetCharging(**wish, mean=accounting.not_prior_mean).epsilon_each,
        mechanisms.IndividualCharging(3, **wish).epsilon_each,
    ]
    assert each == pytest.approx([1 / row.query] * 2, rel=1e-8)
    assert mechanisms.TargetCharging(**wish).epsilon_each < (1 - 1e-3) / row.query  # which knows less
