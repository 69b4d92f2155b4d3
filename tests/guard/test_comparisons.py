"""Is the new model better than the old one? Paired questions on the budget of all questions."""

from decimal import Decimal

import numpy as np
import pytest
from cases import for_each, refuses
from long_tests import GUARD
from made_guards import made_guard
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from reusable_holdout import Difference, Plan, verify
from reusable_holdout.errors import Halted, InputError


def pair(scoring, old=0.70, new=0.75, variant=0):
    return scoring(new, variant), scoring(old, variant)


def test_an_honest_difference_is_agreed_with_and_another_is_corrected(make_guard, scoring):
    guard = make_guard(seed=1)
    agreed = guard.compare(*pair(scoring), prior=0.04)
    assert (agreed.value, agreed.charged) == (0.04, False)
    assert agreed.low < 0.05 < agreed.high
    # the difference is 0.05, then -0.05; both are 0.15 below what was stated: told as 0.1 to 0.2 below it
    corrected = guard.compare(*pair(scoring), prior=0.2)
    assert (corrected.value, corrected.charged, corrected.charges_left) == (0.05, True, 2)
    backwards = guard.compare(*reversed(pair(scoring)), prior=0.1)
    assert (backwards.value, backwards.charged) == (-0.05, True)


def test_comparisons_and_scores_share_one_budget_and_replay(make_guard, scoring):
    guard = make_guard(seed=1)
    guard.evaluate(scoring(0.7), prior=0.85)
    first = guard.compare(*pair(scoring), prior=0.2)
    guard.evaluate(scoring(0.7, 1), prior=0.85)
    assert guard.halted
    refuses(Halted, "", guard.compare, *pair(scoring, variant=2), prior=0.0)
    again = guard.compare(*pair(scoring), prior=0.2)
    assert again.replayed
    assert again.value == first.value
    assert guard.history()["paired"].tolist() == [False, True, False]


def test_the_less_two_models_differ_the_narrower_a_prior_that_is_agreed(labels):
    """Nothing is declared: at the same tolerance rows that hardly differ certify what others do not."""
    rng = np.random.default_rng(3)
    answers = []
    for differing in (20, 1_000):
        old = labels.copy()
        old[rng.choice(len(labels), differing, replace=False)] ^= 1
        new = labels.copy()
        new[rng.choice(len(labels), differing, replace=False)] ^= 1
        guard = made_guard(None, labels, queries=100, charges=3, seed=1)
        truth = (new == labels).mean() - (old == labels).mean()
        answers.append(guard.compare(new, old, prior=truth, tolerance=0.03))
    few, many = answers
    assert (few.charged, few.high - few.low) == (False, pytest.approx(0.06))
    assert many.charged
    assert many.low <= 0.0 <= many.high


def test_a_gate_says_yes_or_no_about_an_improvement(make_guard, scoring):
    guard = make_guard(policy="gate", seed=1, threshold=None)
    yes = guard.gate(Difference(*pair(scoring)), 0.02)
    no = guard.gate(Difference(*pair(scoring, variant=1)), 0.08)
    assert (yes.charged, yes.value, yes.low, yes.high) == (True, 0.02, pytest.approx(0.02), 1.0)
    assert (no.charged, no.value, no.low, no.high) == (False, 0.08, -1.0, 1.0)


def test_a_gate_tells_what_is_worse_on_request(make_guard, ledger, scoring):
    """It asks about the reversed difference, so verification finds two gates, and another edition is not needed."""
    guard = make_guard(ledger, policy="gate", seed=1, threshold=None)
    worse = guard.gate(Difference(*reversed(pair(scoring))), 0.02, tell_worse=True, name="old")
    assert (worse.outcome, worse.charged, worse.prior, worse.name) == ("worse", True, 0.02, "old")
    assert (worse.value, worse.low, worse.high) == (0.02, -1.0, pytest.approx(0.02))
    unknown = guard.gate(Difference(*pair(scoring, variant=1)), 0.05, tell_worse=True)
    assert (unknown.outcome, unknown.charges_left) == ("not shown", worse.charges_left)
    better = guard.gate(Difference(*pair(scoring, variant=2)), 0.0, tell_worse=True)
    assert (better.outcome, guard.queries_asked) == ("better", 5)
    assert guard.gate(Difference(*reversed(pair(scoring))), 0.02, tell_worse=True).replayed
    for subject, tell in [(scoring(0.7), True), (Difference(*pair(scoring)), "no")]:
        with pytest.raises(InputError, match=r"needs one Difference.*nothing was asked"):
            guard.gate(subject, 0.6, tell_worse=tell)
    exact = guard.gate(Difference(*pair(scoring, variant=3)), Decimal("0.2"), tell_worse=True, name="n" * 200)
    assert (exact.outcome, guard.queries_asked) == ("worse", 7)
    guard.close()
    assert verify(ledger).queries == 7


def test_a_halt_before_the_reversed_question_holds_the_first_answer(make_guard, scoring):
    guard = make_guard(policy="gate", seed=1, threshold=None, queries=1, charges=1)
    halted = refuses(Halted, "", guard.gate, Difference(*pair(scoring)), 0.06, tell_worse=True)
    assert [one.outcome for one in halted.answers] == ["not shown"]


def test_a_model_is_not_compared_with_itself(problem):
    X_train, y_train, X, y = problem
    guard = made_guard(X, y, queries=10, charges=2, seed=1, vacuous=True)
    model = LogisticRegression().fit(X_train, y_train)
    with pytest.raises(InputError, match=r"got one LogisticRegression twice.* nothing was charged"):
        guard.compare(model, model, prior=0.0)
    assert (guard.queries_asked, guard.queries_left) == (0, 10)
    guard.compare(model, DecisionTreeClassifier().fit(X_train, y_train), prior=0.1)
    assert (guard.queries_asked, guard.queries_left, guard.on("brier").queries_left) == (1, 9, 9)


def test_a_gate_asks_about_the_improvement_that_is_named_and_never_about_an_estimate_of_it(problem):
    X_train, y_train, X_holdout, y_holdout = problem
    model = LogisticRegression().fit(X_train, y_train)
    guard = made_guard(X_holdout, y_holdout, queries=20, charges=4, policy="gate", seed=1)
    other = DecisionTreeClassifier(max_depth=1).fit(X_train, y_train)
    refuses(InputError, "gates alone; nothing was asked", guard.compare, model, other, X_train, y_train)
    refuses(InputError, "a prior must be", guard.gate, Difference(model, other), "cross-validation")
    assert guard.queries_asked == 0


def test_a_ledger_of_differences_verifies_whatever_tolerances_of_their_own_they_were_asked_with(
    make_guard, ledger, scoring
):
    """The rows decide; a tolerance that none could certify is refused."""
    guard = make_guard(ledger, threshold=None, queries=20, charges=6)

    def ask(tolerance):
        return guard.compare(*pair(scoring), prior=0.04, tolerance=tolerance)

    for tolerance in (0.5, 0.05, 0.01):
        ask(tolerance)
    for tolerance in (1e-4, 1e-8):
        charges = guard.charges_left
        refuses(InputError, "at least", ask, tolerance)
        assert guard.charges_left == charges
    guard.close()
    found = verify(ledger)
    assert found.sound, found.problems


def test_the_plot_shows_scores_and_leaves_differences_out(make_guard, scoring):
    guard = make_guard(seed=1)
    guard.evaluate(scoring(0.7), prior=0.72)
    guard.compare(*pair(scoring), prior=0.04)
    ax = guard.plot()
    drawn = np.concatenate(
        [np.ravel(c.get_offsets()) for c in ax.collections if len(np.ravel(c.get_offsets()))] or [np.zeros(0)]
    )
    assert 0.04 not in drawn


@for_each("metric", ["balanced_accuracy", "roc_auc", "f1"])
def test_metrics_that_are_no_mean_over_rows_are_refused(make_guard, scoring, metric):
    guard = make_guard(metric=metric)
    refuses(InputError, "mean over rows", guard.compare, *pair(scoring), prior=0.0)
    assert guard.queries_asked == 0


def test_other_bad_input_is_refused(make_guard, scoring):
    guard = make_guard()
    for new, old in ((scoring(0.7)[:5], scoring(0.7)), (scoring(0.7), None), ([], [])):
        refuses(InputError, "", guard.compare, new, old, prior=0.0)
    with pytest.raises(InputError, match="must be fitted"):
        guard.compare(LogisticRegression(), LogisticRegression(), prior=0.0)
    board = make_guard(board="claims", threshold=None, charges=None, another_budget=True)
    refuses(InputError, "board", board.compare, *pair(scoring), prior=0.0)
    assert guard.queries_asked == board.queries_asked == 0


@pytest.mark.long(*GUARD)
def test_intervals_of_adaptive_comparisons_cover():
    """Against the best so far, keep what was answered better; false alarm 1e-9."""
    runs, rows, questions, missed, told = 80, 1_000, 60, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([91, run])
        labels = rng.integers(0, 2, rows)
        best = rng.integers(0, 2, rows)
        guard = made_guard(
            None,
            labels,
            queries=questions,
            charges=25,
            threshold=0.02,
            seed=run,
            classes=[0, 1],
            vacuous=True,
        )
        covered = True
        try:
            for _ in range(questions):
                changed = rng.choice(rows, 80, replace=False)
                new = best.copy()
                new[changed] = 1 - new[changed]  # the population's difference is 0: labels are coin flips
                answer = guard.compare(new, best, prior=0.0)
                covered &= answer.low <= 0.0 <= answer.high
                told += answer.charged
                if answer.value > 0:
                    best = new
        except Halted:
            pass
        missed += not covered
    assert told > runs
    assert missed <= stats.binom.isf(1e-9, runs, 0.05)


# The plan -----------------------------------------------------------------------------------------------


def test_a_plan_for_differences_needs_fewer_rows_the_less_models_differ():
    wish = {"queries": 32, "charges": 1, "tolerance": 0.02, "bounds": (-1.0, 1.0), "family": "mean"}
    rows = [Plan(**wish, spread=spread).rows for spread in (1.0, 0.7, 0.3, 0.14)]
    assert rows == sorted(rows, reverse=True)
    assert rows[0] > 5 * rows[2]
    plan = Plan(**wish, spread=0.3)
    assert Plan.kept(plan.record()) == plan


UNIT = {"family": "mean", "bounds": (0.0, 1.0)}


@for_each(
    ("changes", "words"),
    [
        *(({"spread": wrong}, "spread") for wrong in (0.0, -1.0, np.nan, "0.1")),
        ({"spread": 35}, "at most 1; got 35; a percentage. write 0.35; nothing was made"),
        ({"spread": 1.1}, "at most 1; got 1.1; nothing was made"),
        (UNIT | {"spread": 0.6}, "at most 0.5; got 0.6; nothing"),
        (UNIT | {"spread": 90}, "at most 0.5; got 90; nothing"),
        (UNIT | {"bounds": (0.0, 50.0), "spread": 26}, "at most 25; got 26; nothing"),
        ({"family": "binomial", "bounds": (0.0, 1.0), "spread": 0.3}, "leave it out"),
    ],
)
def test_a_spread_that_no_rows_can_have_is_refused(changes, words):
    stated = {"rows": 1_000, "queries": 100, "charges": 2, "family": "mean", "bounds": (-1.0, 1.0), **changes}
    refuses(InputError, words, Plan, **stated)
    if stated["family"] == "mean":
        most = (stated["bounds"][1] - stated["bounds"][0]) / 2
        plan = Plan(**stated | {"spread": most})
        older = Plan.kept({**plan.record(), "spread": 40 * most})
        assert older.scores.spread == plan.scores.spread
