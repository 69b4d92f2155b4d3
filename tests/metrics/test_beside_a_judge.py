"""People's scores beside a judge's: unbiased whatever the judge is, and a mean of bounded terms like others."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import for_each, refuses
from made_guards import made_guard
from metrics.one_row import allowed

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.certainty import Evidence, EvidenceRows
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.metrics import GRID, judge_power, score, score_with_judge

NONE = math.nan
IDS = ["a", "b", "c", "d", "e", "f", "g"]
BOTH = np.array([[1, 1], [0, 0.5], [0.25, 1], [NONE, 0], [NONE, 1], [NONE, 0.5], [NONE, 0.75]])


def bound(power=0.5, **settings):
    return score_with_judge(labelled=3, power=power).bind(IDS, **settings)


# ---- what is measured


def test_partners_are_dealt_out_in_turn():
    terms = [1 + 0.5 * ((0 + 0.75) / 2 - 1), 0 + 0.5 * (1 - 0.5), 0.25 + 0.5 * (0.5 - 1)]
    assert bound().prepare(BOTH).tolist() == [*terms, 0, 0, 0, 0]
    assert score_with_judge(labelled=3, power=0.5).measure(IDS, BOTH) == pytest.approx(np.mean(terms))


@for_each("power", [0.0, 0.3, 1.0])
def test_the_mean_is_that_of_people_over_every_population_of_three_kinds_of_rows(power):
    """Over all holdouts of two labelled rows and three others, exactly."""
    kinds = [(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1, 4)), (Fraction(1, 2), Fraction(1))]
    exact = Fraction(power)
    metric = score_with_judge(labelled=2, power=power).bind(range(5))
    for shares in [(1, 1, 1), (5, 1, 2), (0, 3, 1)]:
        chances = [Fraction(share, sum(shares)) for share in shares]
        expected = whole = Fraction(0)
        for rows in itertools.product(range(3), repeat=5):
            chance = math.prod(chances[row] for row in rows)
            human, judge = zip(*(kinds[row] for row in rows), strict=True)
            partners = (judge[2] + judge[4]) / 2, judge[3]
            terms = [human[row] + exact * (partners[row] - judge[row]) for row in range(2)]
            given = np.array(list(zip([*human[:2], NONE, NONE, NONE], judge, strict=True)), float)
            assert metric.prepare(given)[:2] == pytest.approx([float(term) for term in terms])
            expected, whole = expected + chance * sum(terms) / 2, whole + chance
        assert whole == 1
        assert expected == sum(chance * human for chance, (human, _) in zip(chances, kinds, strict=True))


@for_each("power", [0.4, 1.0])
@for_each("named", [0.3, 0.5, 0.8])
def test_evidence_for_a_mean_that_is_not_there_is_at_most_1_on_average(power, named):
    """Of every holdout of two labelled rows and two others, of two kinds of rows whose mean lies just outside."""
    kinds = [(1.0, 1.0), (0.0, 0.6)]
    metric = score_with_judge(labelled=2, power=power).bind(range(4))
    span = metric.metric.upper - metric.metric.lower
    tolerance = 0.1
    for truth, sides in ((named - tolerance, "low"), (named + tolerance, "high")):
        evidence = Evidence((named - metric.metric.lower) / span, tolerance / span, sides)
        average = 0.0
        for rows in itertools.product((0, 1), repeat=4):
            chance = math.prod(
                1 - truth if row else truth for row in rows
            )  # kind 0 scores 1, kind 1 scores 0
            given = np.array([kinds[row] for row in rows])
            given[2:, 0] = NONE
            terms = metric.row_terms(metric.prepare(given)) / GRID
            average += chance * math.exp(evidence.of(EvidenceRows(terms, np.ones(2))))
        assert average <= 1.0 + 1e-7


def test_without_power_it_is_the_score_of_the_labelled_rows():
    plain, beside = score().bind(IDS[:3]), bound(power=0.0)
    assert (beside.metric.lower, beside.metric.upper) == (0, 1)
    human = BOTH[:3, 0]
    assert beside.prepare(BOTH)[:3].tolist() == plain.prepare(human).tolist()
    assert beside.score(beside.prepare(BOTH)[None]) == plain.score(plain.prepare(human)[None])
    assert beside.row_terms(beside.prepare(BOTH)).tolist() == plain.row_terms(plain.prepare(human)).tolist()
    for name in ("sensitivity", "sum_of_squares", "family", "effective_rows"):
        assert getattr(beside, name) == getattr(plain, name)


@for_each("power", [0.2, 1.0])
def test_replacing_a_row_with_its_partners_changes_it_by_no_more_than_it_says(power):
    metric = bound(power=power)
    worst = BOTH.copy()
    worst[0, 0], worst[[0, 3, 6], 1] = 1, [0, 1, 1]
    best = BOTH.copy()
    best[0, 0], best[[0, 3, 6], 1] = 0, [1, 0, 0]
    one, other = (int(metric.score(metric.prepare(given)[None])[0]) for given in (worst, best))
    assert one - other == pytest.approx(float(metric.sensitivity) * GRID)
    assert abs(one - other) <= allowed(metric)


def test_the_bounds_may_be_others():
    metric = score_with_judge(labelled=1, power=0.5, lower=1, upper=5)
    assert (metric.lower, metric.upper) == (-1, 7)
    assert metric.measure(["a", "b"], [[5, 1], [NONE, 5]]) == 7
    with pytest.raises(InputError, match=r"must lie in \[1, 5\]; got others for b;"):
        metric.bind(["a", "b"]).prepare([[5, 1], [NONE, 0]])


def test_a_table_is_brought_into_order():
    frame = pd.DataFrame({"id": IDS, "judge": BOTH[:, 1], "human": BOTH[:, 0]}).sample(frac=1, random_state=0)
    assert bound().prepare(frame).tolist() == bound().prepare(BOTH).tolist()
    several = bound().prepare_many([frame, BOTH])
    assert (
        several[0].tolist() == several[1].tolist() == bound().prepare_many(np.stack([BOTH, BOTH]))[0].tolist()
    )


# ---- what is refused

MISSING = BOTH.copy()
MISSING[1, 0] = NONE
MORE = BOTH.copy()
MORE[5, 0] = 0.5
UNJUDGED = BOTH.copy()
UNJUDGED[6, 1] = NONE
FRAME = pd.DataFrame({"id": IDS, "human": BOTH[:, 0], "score": BOTH[:, 1]})


MISFITS = {
    "one column": (BOTH[:, 0], r"must have shape \(7, 2\), people's and the judge's; got \(7,\)"),
    "a row too few": (BOTH[:6], r"got \(6, 2\)"),
    "a label that is missing": (MISSING, "people must have scored the first 3 rows; got NaN .* for b;"),
    "a label too many": (MORE, "the first 3 rows alone; got scores of f, too"),
    "a row that is not judged": (UNJUDGED, "the judge must have scored every row; got NaN .* for g;"),
    "an infinite score": (np.where(BOTH == 0.75, np.inf, BOTH), "the judge must .* for g;"),
    "a score beyond the bounds": (BOTH * 2, r"must lie in \[0, 1\]; got others for a"),
    "other columns": (FRAME, "must have the columns 'human' and 'judge' .* got .*'human'.*'score'"),
    "other ids": (FRAME.assign(id=list("tuvwxyz")), "must come with the guard's ids"),
}


@for_each("name", MISFITS)
def test_what_does_not_fit_is_refused_and_named(name):
    scores, words = MISFITS[name]
    refuses(InputError, words, bound().prepare, scores)


def test_a_column_that_knows_which_rows_are_labelled_is_refused_beyond_chance():
    rng = np.random.default_rng(0)
    people, copied = np.full((2, 3_300), NONE)
    people[:300] = rng.random(300) < 0.5
    metric = score_with_judge(labelled=300, power=0.9).bind(range(3_300))
    copied[:] = np.r_[people[:300], np.ones(3_000)]
    with pytest.raises(InputError, match=r"score labelled and further rows alike.*0\.2 ") as told:
        metric.prepare(np.stack([people, copied], -1))
    assert f"{people[:300].mean():.3g}" not in str(told.value)  # who reads it may not know the judge's scores
    shifted = np.r_[np.full(300, 0.5), np.full(3_000, 0.69)]
    assert metric.prepare(np.stack([people, shifted], -1)).shape == (3_300,)
    unused = score_with_judge(labelled=300, power=0).bind(range(3_300))  # as without a judge
    assert np.array_equal(unused.prepare(np.stack([people, copied], -1))[:300], people[:300])


def power_of(human, judge, judged=8):
    return judge_power(human, judge, labelled=4, judged=judged)


ONES, GAP = [1] * 12, [*[1] * 11, NONE]
REFUSED = {
    "as many further rows as are labelled, 4; got 3;": lambda: score_with_judge(labelled=4, power=0.5).bind(IDS),
    "takes all rows, each as a draw of its own; got some rows": lambda: bound(sample_weight=[*[1] * 6, 0]),
    "takes all rows, each as a draw of its own; got groups": lambda: bound(groups=list("aabbcde")),
    "at least 10": lambda: power_of([1] * 5, [1] * 5),
    r"got shapes \(12,\) and \(11,\)": lambda: power_of(ONES, ONES[1:]),
    "NaN or infinity": lambda: power_of(GAP, ONES),
    "NaN or infinit": lambda: power_of(ONES, GAP),
    "got judged=3, labelled=4": lambda: power_of(ONES, ONES, judged=3),
}  # fmt: skip


@for_each("words", REFUSED)
def test_what_cannot_be_is_refused_in_words(words):
    refuses(InputError, words, REFUSED[words])


# ---- how far to follow it


def scored(rng, rows, right):
    """Whether people find an answer right, and whether a judge does that agrees with them so often."""
    human = (rng.random(rows) < 0.75).astype(float)
    return human, np.where(rng.random(rows) < right, human, 1 - human)


def test_the_power_is_the_one_of_least_variance():
    human, judge = scored(np.random.default_rng(0), 400, 0.9)
    found = judge_power(human, judge, labelled=100, judged=500)

    def variance(power):
        return np.var(human - power * judge, ddof=1) + power**2 * np.var(judge, ddof=1) / 5

    powers = np.linspace(0, 1, 101)
    assert found.power == pytest.approx(powers[np.argmin([variance(power) for power in powers])], abs=0.011)
    assert found.worth == pytest.approx(np.var(human, ddof=1) / variance(found.power))
    assert found.worth > 1.5
    assert "helps" in str(found)


def test_a_judge_that_knows_nothing_is_left_out():
    rng = np.random.default_rng(1)
    found = [judge_power(*scored(rng, 200, 0.5), labelled=100, judged=1_000) for _ in range(200)]
    assert sum(one.power == 0 for one in found) >= 190
    assert max(one.power for one in found) < 0.4
    assert "does not help" in str(next(one for one in found if one.power == 0))


def test_scores_that_never_differ_do_not_help():
    rising, same = np.arange(10) / 10, np.ones(10)
    spread = np.std(rising, ddof=1)
    assert judge_power(same, rising, labelled=5, judged=5) == (0, 1, 0, 0)
    assert judge_power(rising, same, labelled=5, judged=5) == (0, 1, 0, pytest.approx(spread))
    unlike = rising[[4, 9, 0, 5, 1, 8, 3, 6, 2, 7]]
    found = judge_power(rising, unlike, labelled=5, judged=5)
    assert found == (0, 1, pytest.approx(np.corrcoef(rising, unlike)[0, 1]), pytest.approx(spread))


# ---- behind a guard


def test_a_guard_keeps_it(tmp_path):
    rng = np.random.default_rng(2)
    rows = 3_000
    ids = [f"q{number}" for number in range(rows)]
    human, judge = scored(rng, rows, 0.95)
    human[500:] = NONE
    both = np.stack([human, judge], -1)
    metric = score_with_judge(labelled=500, power=0.7)
    guard = made_guard(
        None, ids, metric=metric, queries=20, tolerance=0.2, reveals=1, seed=0, ledger=tmp_path / "judged.db"
    )
    answer = guard.evaluate(both, prior=0.75)
    assert not answer.charged
    assert answer.low < 0.75 < answer.high
    better = both.copy()
    better[:, 1] = 1 - better[:, 1]  # another judge: another question
    assert not guard.evaluate(better, prior=0.75).replayed
    value = guard.reveal(both, prior=0.75)
    guard.close()
    with ReusableHoldout.open(tmp_path / "judged.db", None, ids) as again:
        assert again.metric == metric
        assert again.evaluate(pd.DataFrame({"id": ids, "human": human, "judge": judge}), prior=0.75).replayed
        assert again.reveal(both, prior=0.75).value == value.value
        final = again.final(both)
    assert final.low < 0.75 < final.high
    assert verify(tmp_path / "judged.db").sound


def test_a_plan_with_it_counts_the_labelled_rows():
    ids = list(range(400))
    with pytest.raises(PlanError):
        made_guard(None, ids, metric=score_with_judge(labelled=20, power=0.5), queries=1_000, tolerance=0.01)
