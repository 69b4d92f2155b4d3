"""Ratios and rankings: exact chances of a miss, over all holdouts of a few rows."""

import itertools
import math

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from within_reach import answered, refused

from reusable_holdout import Plan
from reusable_holdout.certainty import THEORY
from reusable_holdout.errors import InputError
from reusable_holdout.metrics import average_precision, balanced_accuracy, f1, fbeta, jaccard, precision, r2
from reusable_holdout.rules.samples import RatioSample, sample_of, unpacked
from reusable_holdout.ways import FAILED, NO, SPAN, YES, State, Terms, Told
from reusable_holdout.ways.check import Check
from reusable_holdout.ways.table import Ways

ROWS = 6
METRICS = {
    "f1": f1(),
    "fbeta 3": fbeta(beta=3),
    "jaccard": jaccard(),
    "precision": precision(),
    "precision of floor 1": precision(floor=1),
}
PRIORS = [0.05, 0.3, 0.5, 0.65, 0.8, 0.95]


def plan(**more):
    given = {"rows": ROWS, "queries": 1, "charges": 1, "family": "ratio", "estimate": 0.6, "spread": 0.4}
    return Plan(**given | {"confidence": 0.5, "tolerance": 0.55} | more)


def ways(**more):
    return Ways(plan(**more))


def holdouts(types):
    """How many rows are of each type, in all ways there are."""
    for bars in itertools.combinations(range(ROWS + types - 1), types - 1):
        yield np.diff([-1, *bars, ROWS + types - 1]) - 1


def chance(counts, law):
    return math.exp(
        math.lgamma(ROWS + 1)
        - sum(math.lgamma(count + 1) for count in counts)
        + sum(count * math.log(p) for count, p in zip(counts, law, strict=True) if count)
    )


def population(name, metric, law):
    """Of types (label, prediction): 11, 10, 01, 00."""
    hit, missed, false, _ = law
    if name.startswith("precision"):
        return hit / max(hit + false, metric.parameters["floor"] * (hit + missed))
    if name == "jaccard":
        return hit / (hit + missed + false)
    b = metric.parameters.get("beta", 1.0) ** 2
    return (1 + b) * hit / ((1 + b) * hit + b * missed + false)


def laws(count, types=4, seed=0):
    rng = np.random.default_rng(seed)
    for concentration in (0.3, 1.0, 4.0):
        for law in rng.dirichlet(np.full(types, concentration), count):
            yield np.maximum(law, 1e-12)


def samples_of_counts(metric):
    """Counts, and the sample that such a holdout gives; a holdout of one class has no guard."""
    for counts in holdouts(4):
        labels = np.repeat([1, 1, 0, 0], counts)
        if 0 < labels.sum() < ROWS:
            bound = metric.bind(labels)
            yield counts, sample_of(bound, bound.prepare(np.repeat([1, 0, 1, 0], counts)))


def told(way, sample, prior):
    """Outcome and interval of one question."""
    if isinstance(way, Check):
        terms, outcome = answered(way, sample.packed(), prior)
    else:
        terms, outcome = way.decide(sample, prior, b"question", State())
    assert way.outcome(Told.parse(outcome.told.text()), terms) == outcome
    return outcome, way.interval(outcome.told, terms, way.length(State()))


def allowed(way):
    return math.exp(way.certificate.log_level(way.length(State()), 1.0)) * (1 + 1e-9)


def outside(interval, truth):
    return not interval.low - 1e-12 <= truth <= interval.high + 1e-12


def chance_of_a_miss(samples, found, law, truth):
    """Sum the chances of the holdouts whose intervals miss the truth."""
    intervals = zip(samples, found, strict=True)
    return sum(chance(counts, law) for (counts, _), interval in intervals if outside(interval, truth))


@pytest.mark.long(*GUARD)
@pytest.mark.parametrize("way", ["check", "reveal", "final"])
@for_each("name", METRICS)
def test_no_answer_misses_more_often_than_its_node_allows(name, way):
    metric, kind = METRICS[name], getattr(ways(), way)
    samples = list(samples_of_counts(metric))
    for prior in PRIORS if way != "final" else PRIORS[:1]:
        if way == "final":
            length = kind.length(State())
            decided = [kind.decide(sample, length) for _, sample in samples]
            found = [kind.interval(outcome.told, terms, length) for terms, outcome in decided]
        else:
            found = [told(kind, sample, prior)[1] for _, sample in samples]
        for law in laws(12):
            truth = population(name, metric, law)
            assert chance_of_a_miss(samples, found, law, truth) <= allowed(kind)


@pytest.mark.long(*GUARD)
@pytest.mark.parametrize("missing", [0, 1, 3])
@pytest.mark.parametrize("way", ["check", "reveal"])
def test_a_mean_of_recalls_misses_no_more_often_given_any_class_counts(way, missing):
    """The target is the population's, whatever the counts, which are not told; a class may have no rows."""
    kind, classes = getattr(ways(), way), 2 + missing
    for positives in (1, 2, 5):
        labels = np.repeat([1, 0], [positives, ROWS - positives])
        bound = balanced_accuracy().bind(labels, classes=np.arange(classes))
        grid = list(itertools.product(range(positives + 1), range(ROWS - positives + 1)))
        guesses = [
            np.concatenate([np.arange(positives) < hit, np.arange(ROWS - positives) >= right])
            for hit, right in grid
        ]
        samples = [sample_of(bound, bound.prepare(guess.astype(int))) for guess in guesses]
        for prior in PRIORS:
            found = [told(kind, sample, prior)[1] for sample in samples]
            shares = [0.0, 0.2, 0.5, 0.8, 0.97, 1.0]
            for own, other, rest in itertools.product(shares, shares, [0.0, 0.5, 1.0] if missing else [0.0]):
                missed = sum(
                    math.comb(positives, hit) * own**hit * (1 - own) ** (positives - hit)
                    * math.comb(ROWS - positives, right) * other**right
                    * (1 - other) ** (ROWS - positives - right)
                    for (hit, right), interval in zip(grid, found, strict=True)
                    if outside(interval, (own + other + missing * rest) / classes)
                )  # fmt: skip
                assert missed <= allowed(kind)


@pytest.mark.long(*GUARD)
@for_each("way", ["check", "reveal"])
def test_an_average_precision_misses_no_more_often_with_ties_in_any_places(way):
    """Types: label 1 or 0, with one of three scores; in the population precision at a score counts all that tie."""
    kind, levels = getattr(ways(), way), [2.0, 1.0, 0.0]
    samples = []
    for counts in holdouts(6):
        labels = np.repeat([1, 1, 1, 0, 0, 0], counts)
        if 0 < labels.sum() < ROWS:
            bound = average_precision().bind(labels)
            samples.append((counts, sample_of(bound, bound.prepare(np.repeat(levels * 2, counts)))))
    for prior in (0.3, 0.6, 0.9):
        found = [told(kind, sample, prior)[1] for _, sample in samples]
        for law in laws(4, types=6):
            own, other = np.cumsum(law[:3]), np.cumsum(law[3:])
            truth = float((law[:3] * own / (own + other)).sum() / law[:3].sum())
            assert chance_of_a_miss(samples, found, law, truth) <= allowed(kind)


PAIRS = [(0.0, 0.2), (1.0, 0.9), (1.0, 0.1), (0.5, 0.5)]  # of target and prediction


@pytest.mark.long(*GUARD)
@for_each("way", ["check", "reveal"])
def test_what_is_explained_about_a_centre_misses_no_more_often(way):
    kind, metric = getattr(ways(), way), r2(lower=0, upper=1, center=0.4, least=-0.5)
    targets, guesses = np.array(PAIRS).T
    samples = []
    for counts in holdouts(4):
        bound = metric.bind(np.repeat(targets, counts))
        samples.append((counts, sample_of(bound, bound.prepare(np.repeat(guesses, counts)))))
    for prior in PRIORS:
        found = [told(kind, sample, prior)[1] for _, sample in samples]
        for law in laws(12):
            errors, totals = law @ (targets - guesses) ** 2, law @ (targets - 0.4) ** 2
            truth = max(1.0 - errors / totals / 1.5, 0.0)  # normalised to [0, 1], as the plan's bounds are
            assert chance_of_a_miss(samples, found, law, truth) <= allowed(kind)


def test_a_gate_accepts_what_is_not_as_good_no_more_often_than_its_node_allows():
    kind, metric = ways(gates=True).gate, f1()
    samples = list(samples_of_counts(metric))
    for prior in PRIORS:
        each = [told(kind, sample, prior) for _, sample in samples]
        assert all(interval == (0.0, 1.0) for outcome, interval in each if outcome.told == Told(NO))
        assert any(outcome.told == Told(YES) for outcome, _ in each) or prior > 0.9
        found = [interval for _, interval in each]
        for law in laws(12):
            truth = population("f1", metric, law)
            assert chance_of_a_miss(samples, found, law, truth) <= allowed(kind)


def test_every_way_a_charge_can_come_out_is_told_around_the_whole_set():
    """All spans occur, each holds the rows' own set at the level of a charge, and none before it does."""
    kind, seen = ways(rows=60, tolerance=0.2).check, set()
    certificate = kind.certificate
    length = kind.length(State())
    nats = certificate.needed(length, certificate.shares.charged)
    sizes = [(10 * size, 6 * size, 6 * size, 5) for size in (1, 2, 3, 4, 6)]
    for counts in [(2_000, 400, 400, 100), (30, 5, 5, 10), *sizes, (3, 1, 1, 1)]:
        bound = f1().bind(np.repeat([1, 1, 0, 0], counts))
        sample = sample_of(bound, bound.prepare(np.repeat([1, 0, 1, 0], counts)))
        for prior in np.linspace(0.02, 0.98, 25):
            outcome, interval = told(kind, sample, prior)
            if not outcome.charged:
                continue
            seen.add(outcome.told)
            low, high = sample.ends(certificate.evidence_set(nats, prior))
            assert interval.low <= max(low, 0.0)
            assert interval.high >= min(high, 1.0)
            for place in range(outcome.told.place):
                earlier = kind.rule.charged(place, prior, 0.1, length)
                assert earlier.low > low - 1e-6 or earlier.high < high + 1e-6
    assert seen == {Told(SPAN, place) for place in range(len(THEORY.spans.spans))}


def test_the_weights_of_what_a_charge_tells_sum_to_at_most_one_and_none_costs_over_two_nats():
    assert sum(span.weight for span in THEORY.spans.spans) + THEORY.spans.failed <= 1.0 + 1e-12
    assert max(THEORY.spans.nats) <= 2.0
    assert THEORY.spans.spans[-1][:2] == (-math.inf, math.inf)


def test_packed_errors_are_the_same_when_they_are_unpacked():
    rng = np.random.default_rng(4)
    bound = r2(lower=0, upper=1, center=0.4).bind(rng.random(30))
    sample, left = (
        sample_of(bound, bound.prepare(rng.random(30))),
        ways().check.certificate.evidence_set(2.0, 0.5),
    )
    assert unpacked(bound, sample.packed()).ends(left) == sample.ends(left)


@for_each("metric", [*METRICS.values(), balanced_accuracy(), average_precision()])
def test_a_packed_sample_is_the_same_when_it_is_unpacked(metric):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 2, 50)
    bound = metric.bind(labels)
    sample = sample_of(bound, bound.prepare(rng.integers(0, 2, 50)))
    again, left = unpacked(bound, sample.packed()), ways().check.certificate.evidence_set(2.0, 0.5)
    assert again.score == sample.score
    assert again.ends(left) == sample.ends(left)


@for_each("metric", [*METRICS.values(), balanced_accuracy(), average_precision()])
def test_how_long_a_packed_sample_is_tells_nothing_of_the_labels(metric):
    several = [[0, 1] * 25, [0] * 49 + [1], [0] + [1] * 49]
    three = metric.name == "balanced_accuracy"
    several += [[0, 1, 2, 2, 2] * 10] if three else []
    bound = [metric.bind(labels, classes=[0, 1, 2] if three else [0, 1]) for labels in several]
    assert len({len(sample_of(one, one.prepare([0, 1] * 25)).packed()) for one in bound}) == 1


@for_each("metric", [*METRICS.values(), balanced_accuracy(), average_precision()])
def test_the_score_of_a_sample_is_the_metrics(metric):
    rng = np.random.default_rng(2)
    bound = metric.bind(rng.integers(0, 2, 50))
    prepared = bound.prepare(rng.integers(0, 2, 50))
    assert sample_of(bound, prepared).score == bound.score(prepared[None])[0]


def test_a_model_that_predicts_no_positive_has_a_precision_of_which_nothing_is_known():
    bound = precision().bind([0, 1] * 500)
    sample = sample_of(bound, bound.prepare(np.zeros(1_000, dtype=int)))
    left = ways().check.certificate.evidence_set(3.0, 0.5)
    assert sample.score == 0
    assert sample.ends(left) == (0.0, 1.0)


def test_outcomes_of_another_kind_are_unknown():
    check, gate = ways().check, ways(gates=True).gate
    terms = Terms(0.5, 0.1)
    for way, text in [(check, "cell 0"), (check, "span 6"), (check, "span x"), (gate, "span 0")]:
        refused(way, text, terms)
    assert check.interval(Told(FAILED), terms, 1.0) == (0.0, 1.0)
    for text in ("value 0.5 within 0.4 0.6; apart", "value 0.5", "value 0.5 within 0.6 0.7"):
        refused(ways().final, text, terms)


@for_each("wrong", [{"noise": 0.1}, {"threshold": 0.1}, {"board": "claims"}])
def test_a_plan_for_a_ratio_has_neither_noise_nor_threshold_nor_claims(wrong):
    refuses(InputError, "ratio", plan, **wrong)


@for_each(
    "metric", [*METRICS.values(), balanced_accuracy(), average_precision(), r2(lower=0, upper=1, center=0.4)]
)
def test_what_was_measured_shows_no_number(metric):
    bound = metric.bind(np.arange(40) % 2)
    prepared = bound.prepare(np.arange(40) % 3 > 0)
    for shown in (bound.sample(prepared), sample_of(bound, prepared)):
        assert not any(letter.isdigit() for letter in f"{shown!r} {shown} {[shown]}")
    if isinstance(shown, RatioSample) and hasattr(shown, "ratios"):
        assert repr(shown.ratios[0]) == "<Ratio>"
