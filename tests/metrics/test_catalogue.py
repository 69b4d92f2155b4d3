"""Every metric of the catalogue: its description, scikit-learn's number, and scores that are exact and repeatable."""

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest
import sklearn.metrics
from cases import for_each, refuses
from metrics.problems import BOUNDS, MEANS, METRICS, NAMED, OWNED, ROOTS, cases, problem, scored
from sklearn.metrics import get_scorer, get_scorer_names

from reusable_holdout import metrics
from reusable_holdout.certainty.exact_ratios import matthews
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import GRID, described_metric, resolve_metric, samples
from reusable_holdout.metrics.catalogue import CATALOGUE
from reusable_holdout.metrics.scoring import GRID_BITS

ROUNDING = 1.1 / GRID

# ---- what they say of themselves

FAMILIES = {  # ledgers keep them
    "binomial": "accuracy f1_micro fbeta_micro precision_micro recall_micro recall_weighted zero_one_loss",
    "bounded": "balanced_accuracy brier hamming_loss log_loss mae mse neg_brier_score "
    "neg_hamming_loss neg_log_loss neg_mean_absolute_error neg_mean_squared_error neg_quantile_loss "
    "quantile_loss r2 recall_macro roc_auc score",
    "bounded-difference": "average_precision f1 f1_macro f1_weighted fbeta fbeta_macro fbeta_weighted jaccard "
    "matthews_corrcoef "
    "neg_root_mean_squared_error precision precision_macro precision_weighted recall rmse roc_auc_ovr "
    "roc_auc_ovr_weighted specificity",
}
RESPONSES = {
    "judged": "score",
    "probabilities": "brier log_loss neg_brier_score neg_log_loss roc_auc_ovr roc_auc_ovr_weighted",
    "scores": "average_precision roc_auc",
    "values": "mae mse neg_mean_absolute_error neg_mean_squared_error neg_quantile_loss "
    "neg_root_mean_squared_error quantile_loss r2 rmse",
}
LOSSES = {"brier", "hamming_loss", "log_loss", "mae", "mse", "quantile_loss", "rmse", "zero_one_loss"}
LIMITS = {
    "log_loss": (0, math.log(100)), "mae": (0, 4), "matthews_corrcoef": (-1, 1), "mse": (0, 16),
    "quantile_loss": (0, 2), "r2": (1 - 16 / 1.25, 1), "rmse": (0, 4),
}  # fmt: skip


@for_each(
    ("family", "name"), [(family, name) for family, names in FAMILIES.items() for name in names.split()]
)
def test_a_released_metric_is_what_its_name_says(family, name):
    metric = NAMED[name]
    loss = {"neg_brier_score": "brier", "neg_mean_absolute_error": "mae", "neg_mean_squared_error": "mse"}
    loss = loss.get(name, name.removeprefix("neg_").replace("root_mean_squared_error", "rmse"))
    low, high = LIMITS.get(loss, (0, 1))
    limits = (low, high) if loss == name else (-high, -low)
    responses = {one: response for response, names in RESPONSES.items() for one in names.split()}
    assert (metric.lower, metric.upper) == pytest.approx(limits)
    assert (metric.name, metric.response) == (name, responses.get(name, "labels"))
    assert (metric.greater_is_better, metric.family) == (name not in LOSSES, family)


@for_each("name", METRICS)
def test_a_description_is_json_tells_metrics_apart_and_is_read_back(name):
    metric = METRICS[name]
    described = metric.describe()
    assert [*described][:3] == ["name", "response", "lower"]
    assert [*described][3:] == ["upper", "greater_is_better", "family", "parameters"]
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    for other in METRICS.values():
        assert (other.describe() == described) == (other == metric)
    if name not in OWNED:
        again = described_metric(described)
        assert again == metric
        assert hash(again) == hash(metric)
    pickled = pickle.loads(pickle.dumps(metric))
    assert (pickled, hash(pickled), pickled.describe()) == (metric, hash(metric), described)


@for_each("name", NAMED)
def test_a_name_is_enough_unless_something_must_be_stated(name):
    if not CATALOGUE[name].stated:
        assert resolve_metric(name) == NAMED[name]
        return
    with pytest.raises(
        InputError, match=rf"must be stated for '{name}'; got the name alone; pass "
    ) as caught:
        resolve_metric(name)
    code = str(caught.value).split("; pass ")[1].removesuffix(", from reusable_holdout.metrics")
    for word, number in CATALOGUE[name].stated.items():
        code = code.replace(f"{word}=...", f"{word}={number!r}")
    assert eval(code, vars(metrics)) == NAMED[name]


def test_a_metric_resolves_to_itself_and_a_short_name_to_its_metric():
    metric = metrics.mae(lower=0, upper=2)
    assert resolve_metric(metric) is metric
    assert resolve_metric("mcc").name == "matthews_corrcoef"


@for_each("description", [{}, {"name": "mine"}, METRICS["f1"].describe() | {"upper": 2.0}])
def test_a_description_of_no_metric_of_the_catalogue_is_refused(description):
    refuses(InputError, "must be one of the catalogue", described_metric, description)


def test_numbers_of_numpy_are_numbers_and_a_metric_cannot_be_changed():
    assert metrics.mae(lower=np.int64(-1), upper=np.float32(3)) == metrics.mae(**BOUNDS)
    assert metrics.log_loss(clip=np.float32(0.5)) == metrics.log_loss(clip=0.5)
    assert metrics.mse(lower=np.float32(-3e38), upper=np.float32(3e38)).upper > 1e76
    with pytest.raises(AttributeError):
        resolve_metric("accuracy").upper = 2


# ---- the number that scikit-learn computes


def sklearns(name, y, predictions, **weights):
    entry = CATALOGUE[name]
    called = dict(entry.called)
    if entry.function == "mean_pinball_loss":
        called["alpha"] = entry.stated["quantile"]
    if entry.function == "fbeta_score":
        called["beta"] = 2
    if entry.function in {f"{one}_score" for one in ("f1", "precision", "recall")}:
        called["zero_division"] = 0
    return entry.sign * getattr(sklearn.metrics, entry.function)(y, predictions, **called, **weights)


def of_sklearn():
    other = {"r2"}  # compares with a stated variance
    return [
        (name, classes) for name, classes in cases(NAMED) if CATALOGUE[name].function and name not in other
    ]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
@for_each("seed", range(4))
@for_each(("name", "classes"), of_sklearn())
def test_the_value_is_scikit_learns(name, classes, seed):
    metric, factor = NAMED[name], 0.5 if name == "brier" and classes > 2 else 1
    y, (predictions, *_) = problem(metric, classes, rows=401, seed=seed)
    expected = factor * sklearns(name, y, predictions)
    assert metric.measure(y, predictions) == pytest.approx(expected, abs=1e-12)
    bound, width = metric.bind(y), metric.upper - metric.lower
    assert scored(bound, predictions) == pytest.approx(expected, abs=width * ROUNDING)
    if name in get_scorer_names():  # the same name there is the same number
        scorer = get_scorer(name)
        assert expected == scorer._sign * scorer._score_func(y, predictions, **scorer._kwargs)
        assert metric.greater_is_better
    if name in (MEANS | ROOTS) - {"recall_weighted"}:
        w = np.random.default_rng(seed).lognormal(0, 1, len(y))
        expected = factor * sklearns(name, y, predictions, sample_weight=w)
        assert metric.measure(y, predictions, sample_weight=w) == pytest.approx(expected, abs=1e-8)


@for_each("seed", range(3))
def test_the_value_is_scikit_learns_with_other_numbers(seed):
    y, (guesses, *_) = problem(METRICS["f1"], rows=300, seed=seed)
    for beta, average in itertools.product((0.5, 2), ("binary", "macro", "micro", "weighted")):
        expected = sklearn.metrics.fbeta_score(y, guesses, beta=beta, average=average)
        assert metrics.fbeta(beta=beta, average=average).measure(y, guesses) == pytest.approx(expected)
    y, (values, *_) = problem(METRICS["mse"], rows=300, seed=seed)
    expected = sklearn.metrics.r2_score(y, values)
    assert metrics.r2(**BOUNDS, variance=np.var(y)).measure(y, values) == pytest.approx(expected)
    assert metrics.r2(**BOUNDS, center=y.mean()).measure(y, values) == pytest.approx(expected)


@for_each("classes", [2, 300])
@for_each("name", ["accuracy", "zero_one_loss", "balanced_accuracy", "f1_macro"])
def test_many_classes_and_text_are_the_same_number(name, classes):
    rng = np.random.default_rng(classes)
    y = np.resize(np.arange(classes), 900)
    guesses = np.where(rng.random(900) < 0.6, y, rng.integers(0, classes, 900))
    names = np.array([f"class {number:03}" for number in range(classes)])
    expected = sklearns(name, y, guesses)
    assert NAMED[name].measure(y, guesses) == pytest.approx(expected, abs=1e-12)
    assert NAMED[name].measure(names[y], names[guesses]) == pytest.approx(expected, abs=1e-12)


@for_each("constant", [0, 1])
@for_each("name", [name for name in NAMED if METRICS[name].response == "labels" and CATALOGUE[name].sign > 0])
def test_a_constant_prediction_is_scored_as_scikit_learn_does(name, constant):
    y, guesses = np.repeat([0, 1], [7, 3]), np.full(10, constant)
    assert NAMED[name].measure(y, guesses) == pytest.approx(sklearns(name, y, guesses), abs=1e-12)


def test_a_precision_below_its_floor_counts_the_missing_predictions_as_wrong():
    y = np.repeat([0, 1], [10, 8])
    for floor, least in [(0.5, 4), (1, 8), (0.26, 3), (1e-9, 1)]:
        for hits, predicted in [(0, 0), (1, 1), (2, 3), (3, 4), (8, 8), (8, 18)]:
            guesses = np.concatenate([np.arange(10) < predicted - hits, np.arange(8) < hits])
            expected = hits / max(predicted, least)
            assert metrics.precision(floor=floor).measure(y, guesses) == pytest.approx(expected)


def test_a_correlation_below_its_floor_takes_the_predictions_to_vary_more():
    y, few = np.repeat([0, 1], [60, 40]), np.arange(100) >= 90
    for floor, least in [(0.1, 10), (0.5, 20), (1, 40)]:
        expected = (100 * 10 - 40 * 10) / math.sqrt(40 * 60 * least * (100 - least))
        assert metrics.matthews_corrcoef(floor=floor).measure(y, few) == pytest.approx(expected)
    bound = metrics.matthews_corrcoef().bind(y)
    assert bound.score(bound.prepare_many([y, 1 - y, 0 * y])).tolist() == [GRID, 0, GRID // 2]


def test_log_loss_raises_the_true_classs_probability_to_the_clip():
    for classes in (2, 3):
        y, (given, *_) = problem(METRICS["log_loss"], classes)
        matrix = given if classes > 2 else np.stack([1 - given, given], axis=1)
        truth = matrix[np.arange(len(y)), y]
        expected = -np.log(np.maximum(truth, 0.4)).mean()
        assert metrics.log_loss(clip=0.4).measure(y, given) == pytest.approx(expected)


@for_each("name", [name for name in METRICS if METRICS[name].response == "values"])
def test_predictions_beyond_the_bounds_are_clipped_which_only_helps(name):
    y, (predictions, *_) = problem(METRICS[name])
    wild = 1e9 * predictions
    clipped = np.clip(wild, BOUNDS["lower"], BOUNDS["upper"])
    assert METRICS[name].measure(y, wild) == METRICS[name].measure(y, clipped)


@for_each(
    "name", [name for name, one in METRICS.items() if one.response == "values" and one.kernel is not None]
)
def test_a_guard_clips_targets_beyond_the_bounds_and_known_rows_are_refused(name):
    metric = METRICS[name]
    y, (predictions, *_) = problem(metric)
    wild = np.where(np.arange(len(y)) % 3, y, 50.0 * y + 99.0)
    bound, kept = metric.bind(wild), metric.bind(np.clip(wild, BOUNDS["lower"], BOUNDS["upper"]))
    for told in (predictions, wild, wild[::-1]):
        prepared = bound.prepare(told)
        assert bound.score(prepared[None]) == kept.score(prepared[None])
        assert bound.statistic.value(prepared) == kept.statistic.value(prepared)
    assert bound.numbers == kept.numbers
    caught = refuses(InputError, "got targets outside", metric.measure, wild, predictions)
    assert "99" not in str(caught)


def test_the_last_of_the_sorted_classes_is_the_positive_one():
    assert resolve_metric("brier").measure(["no", "yes"], [0.0, 1.0]) == 0
    assert resolve_metric("roc_auc").measure([1, -1], [0.9, 0.1]) == 1
    assert resolve_metric("log_loss").measure([True, False], [1.0, 0.0]) == 0
    bound = resolve_metric("balanced_accuracy").bind(["no", "yes", "no"], classes=["yes", "no", "maybe"])
    assert (bound.rows, bound.classes.tolist()) == (3, ["maybe", "no", "yes"])


def test_a_class_without_rows_widens_probabilities_and_is_left_out_of_averages():
    y, guesses, classes = [0, 0, 1, 1], [0, 2, 1, 0], [0, 1, 2]
    assert metrics.brier().measure([0, 1], np.eye(3)[:2], classes=classes) == 0
    expected = {"f1_macro": (1 / 2 + 2 / 3) / 2, "precision_macro": (1 / 2 + 1) / 2, "recall_macro": 1 / 2}
    for name, value in expected.items():
        assert NAMED[name].measure(y, guesses, classes=classes) == pytest.approx(value)
    bound = NAMED["balanced_accuracy"].bind(y, classes=classes)  # nothing is known of a third recall
    (rows,) = bound.sample(bound.prepare(guesses)).ratios
    assert (rows.factor, len(rows.values)) == (pytest.approx(2 / 3), 6)
    y, (matrix, *_) = problem(METRICS["roc_auc_ovr"], 3)
    y[y == 2] = 0
    areas = [sklearn.metrics.roc_auc_score(y == code, matrix[:, code]) for code in (0, 1)]
    assert NAMED["roc_auc_ovr"].measure(y, matrix, classes=classes) == pytest.approx(np.mean(areas))


# ---- scores


@for_each(("name", "classes"), cases())
def test_a_batch_scores_as_its_queries_do_one_by_one_and_changes_nothing_that_is_hashed(name, classes):
    metric = METRICS[name]
    y, batch = problem(metric, classes)
    y, batch = (list(y), batch.copy()) if metric.response == "judged" else (y.copy(), batch.copy())
    bound = metric.bind(y)
    prepared = bound.prepare_many(batch)
    before = prepared.tobytes()
    scores = bound.score(prepared)
    assert (scores.dtype, scores.shape) == (np.int64, (3,))
    for query, units, one in zip(batch, scores, prepared, strict=True):
        alone = bound.prepare(query)
        assert (alone.tobytes(), alone.dtype, alone.shape) == (one.tobytes(), one.dtype, one.shape)
        assert bound.score(alone[None]).tolist() == [units]
        exact = (metric.measure(y, query) - metric.lower) / (metric.upper - metric.lower)
        assert units / GRID == pytest.approx(exact, abs=ROUNDING)
    y[:], batch[:] = y[:1] * len(y) if isinstance(y, list) else y[0], batch[0, 0]
    assert bound.score(prepared).tolist() == scores.tolist()
    assert prepared.tobytes() == before
    assert bound.score(prepared[:0]).tolist() == []


RATIOS = [case for case in cases() if METRICS[case[0]].bind(problem(METRICS[case[0]], case[1])[0]).is_ratio]


def value_of(sample):
    """Normalised value of the rows that a confidence set is made of."""
    if isinstance(sample, samples.Counted):
        values = [
            one.factor * (one.counts * one.weights) @ one.values / (one.counts @ one.weights)
            for one in sample.ratios
        ]
        return sample.weights @ np.reshape(values, (len(sample.weights), -1)).min(axis=1)
    if isinstance(sample, samples.Ordered):
        return (np.sign(np.subtract.outer(sample.positive, sample.negative)) + 1).mean() / 2
    if isinstance(sample, samples.Rates):
        recall, specificity = sample.hits / sample.positives, sample.rejected / sample.negatives
        return (
            1 + matthews(recall, specificity, sample.positives / (sample.positives + sample.negatives))
        ) / 2
    if isinstance(sample, samples.Explained):
        return 1 - sample.errors.mean() / (sample.unit * sample.totals.mean())
    hits = np.arange(len(sample.above)) + 1.0  # without ties
    return (hits / (hits + sample.above)).mean()


@for_each(("name", "classes"), RATIOS)
def test_the_rows_of_a_ratio_make_its_score_also_on_a_slice(name, classes):
    metric, chosen = METRICS[name], np.arange(60) % 3 > 0
    y, (given, *_) = problem(metric, classes)
    given = given + 1e-4 * np.arange(60) if metric.response == "scores" else given
    bound, sliced, alone = metric.bind(y), metric.bind(y, sample_weight=chosen), metric.bind(y[chosen])
    sample = bound.sample(bound.prepare(given))
    assert [sample.score] == bound.score(bound.prepare(given)[None]).tolist()
    assert value_of(sample) == pytest.approx(sample.score / GRID, abs=1e-8)
    ours, theirs = sliced.sample(sliced.prepare(given)), alone.sample(alone.prepare(given[chosen]))
    assert ours.score == theirs.score
    assert value_of(ours) == value_of(theirs)


def test_those_are_the_ratios():
    names = {name for name, _ in RATIOS}
    assert names >= {"average_precision", "balanced_accuracy", "f1", "fbeta", "jaccard", "precision"}
    assert "r2 about a center" in names
    assert names >= {"f1_macro", "f1_weighted", "matthews_corrcoef", "roc_auc"}
    assert names.isdisjoint({"matthews_corrcoef of floor 0.1", "recall", "r2"})


def test_one_prepared_query_needs_a_leading_axis():
    bound = resolve_metric("accuracy").bind([0, 1, 1])
    refuses(InputError, r"\(queries, 3, ...\); got \(3,\)", bound.score, bound.prepare([0, 1, 0]))


@for_each("rows", [1, 3, 7, 1_000, 4_099])
@for_each("name", ["accuracy", "zero_one_loss"])
def test_shares_are_exact_to_the_last_unit(name, rows):
    bound = resolve_metric(name).bind(np.zeros(rows, int), classes=[0, 1])
    hits = sorted({0, 1, rows // 3, rows - 1, rows})
    prepared = bound.prepare_many([[0] * hit + [1] * (rows - hit) for hit in hits])
    counts = [hit if name == "accuracy" else rows - hit for hit in hits]
    assert bound.score(prepared).tolist() == [(count << GRID_BITS) // rows for count in counts]


@for_each("counts", [(1, 1), (3, 7), (8, 2)])
@for_each("beta", [0.5, 1, 2])
def test_ratios_of_counts_are_exact_to_the_last_unit(counts, beta):
    negatives, positives = counts
    y, b = np.repeat([0, 1], counts), Fraction(beta) ** 2
    ratios = {"balanced_accuracy": METRICS["balanced_accuracy"], "jaccard": METRICS["jaccard"]}
    bounds = {name: metric.bind(y) for name, metric in (ratios | {"fbeta": metrics.fbeta(beta=beta)}).items()}
    for false, hits in itertools.product(range(negatives + 1), range(positives + 1)):
        guesses = np.concatenate([np.arange(negatives) < false, np.arange(positives) < hits])
        exact = {
            "balanced_accuracy": (1 - Fraction(false, negatives) + Fraction(hits, positives)) / 2,
            "fbeta": (1 + b) * hits / (hits + false + b * positives),
            "jaccard": Fraction(hits, false + positives),
        }
        for name, bound in bounds.items():
            assert bound.score(bound.prepare(guesses)[None])[0] == exact[name] * GRID // 1


@for_each("y", sorted(set(itertools.permutations([0, 0, 1, 1, 1]))))
def test_an_area_is_the_share_of_ordered_pairs_to_the_last_unit(y):
    bound = resolve_metric("roc_auc").bind(y)
    every = np.array(list(itertools.product(range(3), repeat=5)))
    positive, negative = every[:, np.array(y) == 1], every[:, np.array(y) == 0]
    twice = np.sign(positive[:, :, None] - negative[:, None]) + 1
    exact = (twice.sum(axis=(1, 2), dtype=np.int64) << GRID_BITS) // 12
    assert bound.score(bound.prepare_many(every)).tolist() == exact.tolist()
