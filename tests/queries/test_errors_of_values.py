"""RMSE, R2 and quantile loss: the textbook's values, what one row can change, and how far they stray."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
import sklearn.metrics
from cases import for_each
from long_tests import QUERIES, VALIDITY
from queries.one_row import allowed, climbed_change, largest_changes

from reusable_holdout.errors import InputError
from reusable_holdout.queries import GRID, described_metric, mse, quantile_loss, r2, resolve_metric, rmse
from reusable_holdout.validity import ConfidenceBound

LOW, HIGH = -1.0, 3.0
METRICS = {
    "rmse": rmse(lower=LOW, upper=HIGH),
    "rmse above a floor": rmse(lower=LOW, upper=HIGH, floor=0.4),
    "r2": r2(lower=LOW, upper=HIGH, variance=1.25),
    "quantile_loss": quantile_loss(lower=LOW, upper=HIGH),
    "quantile_loss 0.9": quantile_loss(lower=LOW, upper=HIGH, quantile=0.9),
}


def values(seed, rows=301):
    rng = np.random.default_rng(seed)
    y = rng.uniform(LOW, HIGH, rows)
    return y, np.clip(y + rng.normal(0, 0.7, rows), LOW, HIGH)


def measured(metric, y, predictions):
    """By its plain value and by its score."""
    bound = metric.bind(y)
    units = bound.score(bound.prepare(predictions)[None])[0]
    return metric.measure(y, predictions), metric.lower + units / GRID * (metric.upper - metric.lower)


def agrees(metric, y, predictions, expected):
    plain, scored = measured(metric, y, predictions)
    assert plain == pytest.approx(expected, abs=1e-12)
    assert scored == pytest.approx(expected, abs=1.1 / GRID * (metric.upper - metric.lower))


@for_each("seed", range(5))
def test_values_equal_scikit_learns(seed):
    y, predictions = values(seed)
    root = sklearn.metrics.root_mean_squared_error(y, predictions)
    agrees(rmse(lower=LOW, upper=HIGH), y, predictions, root)
    agrees(rmse(lower=LOW, upper=HIGH, floor=0.3), y, predictions, root)
    agrees(rmse(lower=LOW, upper=HIGH, floor=2), y, predictions, 2)
    agrees(
        r2(lower=LOW, upper=HIGH, variance=np.var(y)),
        y,
        predictions,
        sklearn.metrics.r2_score(y, predictions),
    )
    for quantile in (0.05, 0.5, 0.9):
        expected = sklearn.metrics.mean_pinball_loss(y, predictions, alpha=quantile)
        agrees(quantile_loss(lower=LOW, upper=HIGH, quantile=quantile), y, predictions, expected)


@for_each("name", METRICS)
def test_predictions_beyond_the_bounds_are_clipped_which_only_helps(name):
    metric = METRICS[name]
    y, predictions = values(3)
    wild = predictions * 1e9
    assert metric.measure(y, wild) == metric.measure(y, np.clip(wild, LOW, HIGH))


@for_each("name", METRICS)
def test_targets_beyond_the_bounds_are_clipped_too_which_makes_no_error_larger(name):
    """Rows that are no secret are refused instead, and not quoted."""
    metric = METRICS[name]
    y, predictions = values(4)
    wild = np.where(np.arange(len(y)) % 3, y, 50 * y)
    bound, kept = metric.bind(wild), metric.bind(np.clip(wild, LOW, HIGH))
    for told in (predictions, wild, wild[::-1]):
        prepared = bound.prepare(told)
        assert bound.score(prepared[None]) == kept.score(prepared[None])
        assert bound.statistic.value(prepared) == kept.statistic.value(prepared)
    assert (bound.sensitivity, bound.sum_of_squares, bound.rows) == (
        kept.sensitivity,
        kept.sum_of_squares,
        kept.rows,
    )
    with pytest.raises(InputError, match=r"must lie in \[-1, 3\]; got targets outside"):
        metric.measure(wild, predictions)


@for_each("name", METRICS)
def test_the_worst_and_the_best_predictions_reach_the_bounds(name):
    metric = METRICS[name]
    y = np.array([LOW] * 4 if "0.9" not in name else [HIGH] * 4)
    worst, best = np.full(4, LOW + HIGH - y[0]), y
    floor = metric.parameters.get("floor", 0)
    expected = [1, floor / (HIGH - LOW)] if not metric.greater_is_better else [0, 1]
    for predictions, share in zip([worst, best], expected, strict=True):
        bound = metric.bind(y)
        assert bound.score(bound.prepare(predictions)[None])[0] / GRID == pytest.approx(share, abs=1e-9)


def test_a_small_root_is_not_lost_to_rounding():
    y = np.full(100, 0.5)
    for error in (1e-3, 1e-5, 1e-7):
        assert measured(rmse(lower=0, upper=1), y, y + error)[1] == pytest.approx(error, abs=2 / GRID + 2e-8)


# ---- what one row can change


@for_each("rows", [1, 2, 4])
@for_each("name", METRICS)
def test_no_row_of_any_small_holdout_changes_a_score_by_more_than_declared(name, rows):
    """A row of target LOW can be predicted anything, so its error is anything: as if the target was replaced too."""
    bound = METRICS[name].bind(np.full(rows, LOW))
    changes = largest_changes(bound, np.linspace(LOW, HIGH, 5))
    assert changes.max() <= allowed(bound)
    if "0.9" not in name:
        assert changes.max() == pytest.approx(float(bound.sensitivity) * GRID, rel=0.03, abs=4)


@pytest.mark.long(*QUERIES)
@for_each("name", METRICS)
def test_climbing_finds_no_larger_change(name):
    rng = np.random.default_rng(1)
    bound = METRICS[name].bind(rng.uniform(LOW, HIGH, 25))
    found = climbed_change(
        bound, lambda rng, rows: rng.choice([LOW, 0.0, HIGH, rng.uniform(LOW, HIGH)], rows), rng
    )
    assert 0.2 * allowed(bound) < found <= allowed(bound)


@for_each("rows", [1, 100, 12_345])
@for_each("floor", [0.0, 0.04, 0.4, 3.9])
def test_the_changes_of_a_root_are_those_derived(rows, floor):
    bound = rmse(lower=LOW, upper=HIGH, floor=floor).bind(np.zeros(rows))
    g = floor / (HIGH - LOW)
    assert float(bound.sensitivity) == pytest.approx(
        math.sqrt(g**2 + 1 / rows) - g if rows > 1 or g == 0 else 1 - g, abs=0.5
    )
    assert (
        bound.sensitivity**2 + 2 * bound.sensitivity * Fraction(g) >= Fraction(1, rows)
        or bound.sensitivity == 1
    )
    assert bound.sum_of_squares == pytest.approx(min(2, 1 / (4 * g**2) if g else 2) / rows)


def test_the_changes_of_the_means_are_one_over_the_rows():
    for name in ("r2", "quantile_loss", "quantile_loss 0.9"):
        bound = METRICS[name].bind(np.zeros(70))
        assert (bound.family, bound.sensitivity) == ("bounded", Fraction(1, 70))
        assert bound.sum_of_squares == pytest.approx(1 / 70)


# ---- how far they stray from the population's value


@for_each("rows", [1, 7, 60, 500])
@for_each("floor", [0.0, 0.1, 0.3, 0.9])
def test_beyond_every_distance_the_exact_tails_of_a_root_are_below_the_declared_ones(rows, floor):
    """For losses of 0 or 1, the extreme ones."""
    spread = rmse(lower=0, upper=1, floor=floor).bind(np.zeros(rows)).sum_of_squares
    counts = np.arange(rows + 1)
    roots = np.sqrt(np.maximum(counts / rows, floor**2))
    for chance in [1e-4, 1e-3, 0.01, 0.05, 0.2, 0.5, 0.9, 0.999]:
        truth = math.sqrt(max(chance, floor**2))
        declared = np.exp(-2 * np.square(roots - truth) / spread)
        below, above = (
            scipy.stats.binom.cdf(counts, rows, chance),
            scipy.stats.binom.sf(counts - 1, rows, chance),
        )
        assert (below <= declared * (1 + 1e-9))[roots < truth].all()
        assert (above <= declared * (1 + 1e-9))[roots > truth].all()


def test_a_root_strays_no_less_than_half_of_what_is_declared():
    """No chance of a loss below 1/n shows: exp(-n m) is the declared tail at distance sqrt(m)."""
    rows = 50
    spread = rmse(lower=0, upper=1).bind(np.zeros(rows)).sum_of_squares
    for chance in (0.01, 0.05):
        assert (1 - chance) ** rows > 0.8 * math.exp(-2 * chance / spread)


RUNS = 20_000


@pytest.mark.long(*VALIDITY)
@for_each("name", METRICS)
def test_confidence_bounds_miss_the_population_no_more_often_than_their_level(name):
    """Sampled: false alarm 1e-9."""
    metric, level = METRICS[name], 0.05
    rng = np.random.default_rng(7)
    rows = 40
    bound = metric.bind(np.full(rows, LOW))
    limits = ConfidenceBound(bound.family, rows=bound.effective_rows, sum_of_squares=bound.sum_of_squares)
    # predictions are LOW, or with chance 0.05 HIGH: an asymmetric law of errors
    share, span = 0.05, metric.upper - metric.lower
    queries = np.where(rng.random((RUNS, rows)) < share, HIGH, LOW)
    scores = bound.score(bound.prepare_many(queries)) / GRID
    ends = [metric.measure(np.array([LOW]), np.array([end])) for end in (LOW, HIGH)]
    truth = (1 - share) * ends[0] + share * ends[1]
    if name.startswith("rmse"):
        truth = max(math.sqrt(share) * (HIGH - LOW), metric.parameters["floor"])
    truth = (truth - metric.lower) / span
    allowed_misses = scipy.stats.binom.isf(1e-9, RUNS, level)
    assert (limits.lower(scores, log_level=math.log(level)) > truth + 1e-8).sum() <= allowed_misses
    assert (limits.upper(scores, log_level=math.log(level)) < truth - 1e-8).sum() <= allowed_misses


# ---- definitions and refusals


@for_each("name", METRICS)
def test_a_description_is_read_back(name):
    assert described_metric(METRICS[name].describe()) == METRICS[name]
    assert described_metric(mse(lower=0, upper=2).describe()) == mse(lower=0, upper=2)


@for_each("name", ["mae", "mse", "rmse", "r2", "quantile_loss"])
def test_a_name_alone_says_what_must_be_stated(name):
    with pytest.raises(InputError, match=rf"must be stated for '{name}'.*pass {name}\(lower=..., upper=..."):
        resolve_metric(name)


@for_each("factory", [rmse, r2, quantile_loss])
@for_each("bounds", [(1, 1), (2, 1), (np.nan, 1), (0, np.inf), ("0", "1"), (None, 1), (-1e300, 1e300)])
def test_bounds_that_bound_nothing_are_refused(factory, bounds):
    more = {"variance": 1} if factory is r2 else {}
    with pytest.raises(InputError, match="finite with lower < upper"):
        factory(lower=bounds[0], upper=bounds[1], **more)


@for_each(
    ("factory", "argument", "refused"),
    [
        (rmse, "floor", [-0.1, 1, 2, np.nan, "0", None]),
        (r2, "variance", [0, -1, 1e-7, 1.1, np.inf, "1"]),
        (quantile_loss, "quantile", [0, 1, -0.1, np.nan, "0.5", None]),
    ],
)
def test_arguments_out_of_range_are_refused(factory, argument, refused):
    for value in refused:
        with pytest.raises(InputError, match=rf"{argument} must .*; got "):
            factory(lower=0, upper=1, **{argument: value})


@for_each("name", METRICS)
@for_each("y", [[np.nan, 48.15], [np.inf, 48.15], ["48.15", "1"], [], [[[0.0, 48.15]]] * 2])
def test_targets_that_do_not_fit_are_refused_and_not_quoted(name, y):
    with pytest.raises(InputError) as caught:
        METRICS[name].bind(y)
    assert "48" not in str(caught.value)
    assert str(caught.value).count(";") >= 2
