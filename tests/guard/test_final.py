"""The final: the holdout's own value, once, and nothing new afterwards; values and intervals by hand."""

import itertools
import math
import pickle

import numpy as np
import pytest
from cases import refuses
from children import Child
from guard.counting import fragile
from guard.forging import every_way, recompute, seal_again, sql
from guard.killing import DEATHS, DYING, died
from guard.test_reveal import ASKING
from joblib import Parallel, delayed
from made_guards import made_guard

from reusable_holdout import verify
from reusable_holdout.certainty import ConfidenceBound
from reusable_holdout.errors import Halted, ModelError, RotatedError

ROWS = 2_000
BOUND = ConfidenceBound("binomial", rows=ROWS, sum_of_squares=1 / ROWS)


def ends(value, *, places, number, nats=0.0, answers=1, beta=0.05):
    """Interval of a final: its history's length, three quarters of the failure probability, half on each side."""
    level = math.log(0.75 * beta / 2) - places - number - nats - math.log(answers)
    return BOUND.lower(value, log_level=level), BOUND.upper(value, log_level=level)


def places_of(charges, last):
    """Nats of the places of charges among 40 questions, the last at this one."""
    even, by_last = math.comb(40, charges), (last + 1) * math.comb(last, charges)
    return -math.log(0.9 / even + 0.1 / by_last)


def number_of(charges, most=3):
    """Nats of a number of charges before a final."""
    return -math.log(0.1 * (most + 1) / (most * charges * (charges + 1)) if charges else 0.9)


# ---- what is told


@pytest.mark.parametrize("score", [0.0, 0.5, 0.7005, 0.8345, 1.0])
def test_a_final_tells_the_holdouts_value_to_the_last_row(make_guard, place, scoring, score):
    guard = make_guard(place)
    answer = guard.final(scoring(score), name="the end")
    assert (answer.way, answer.charged, answer.nats, answer.threshold) == ("final", False, 0.0, 0.0)
    assert (answer.value, answer.told, answer.prior) == (score, f"value {score}", score)
    assert (answer.query, answer.charges_left, answer.name) == (1, 3, "the end")
    low, high = ends(score, places=0.0, number=number_of(0))
    assert answer.low == pytest.approx(low, abs=1 / ROWS)
    assert answer.high == pytest.approx(high, abs=1 / ROWS)


def test_no_noise_is_added_whatever_the_plans(make_guard, scoring):
    for seed in range(5):
        guard = make_guard(noise=0.02, threshold=0.4, seed=seed)
        assert guard.final(scoring(0.7)).value == 0.7


@pytest.mark.parametrize("before", [0, 30])
def test_its_interval_pays_for_the_places_of_the_charges_and_for_what_was_told(
    make_guard, ledger, scoring, spend, before
):
    guard = make_guard(ledger, **ASKING)
    for k in range(before):
        guard.evaluate(scoring(0.7, 100 + k), prior=0.7)
    told = sum(answer.nats for answer in spend(guard, 2))
    told += guard.reveal(scoring(0.6), prior=0.6).nats
    guard.evaluate(scoring(0.65), prior=0.65)  # what is agreed costs nothing
    answer = guard.final(scoring(0.7))
    low, high = ends(0.7, places=places_of(2, before + 2), number=number_of(2), nats=told)
    assert (answer.low, answer.high) == (pytest.approx(low, abs=1 / ROWS), pytest.approx(high, abs=1 / ROWS))
    assert verify(ledger).problems == []


def test_the_last_charge_of_a_batch_is_at_its_own_index_after_those_that_a_choice_takes(
    make_guard, place, scoring
):
    guard = make_guard(place, **ASKING)
    told = guard.choose([scoring(0.7), scoring(0.6)], [0.7, 0.6]).answer.nats
    batch = guard.evaluate([scoring(0.7, k + 1) for k in range(6)], prior=[0.7, 0.85, 0.7, 0.85, 0.7, 0.7])
    assert [answer.charged for answer in batch] == [False, True, False, True, False, False]
    told += sum(answer.nats for answer in batch)
    length = -math.log(0.025) + places_of(2, 6) + number_of(2) + told - math.log(0.75)
    expected = (BOUND.upper(0.7, log_level=-length) - BOUND.lower(0.7, log_level=-length)) / 2
    assert guard.final_width == pytest.approx(expected, rel=1e-9)
    answer = guard.final(scoring(0.7))
    assert (answer.high - answer.low) / 2 == pytest.approx(expected, abs=1 / ROWS)


@pytest.mark.parametrize("rows", [1_000, 5_000, 20_000])
@pytest.mark.parametrize("off", [-1.0, 0.0, 1.0])
def test_after_three_choices_that_favourites_win_it_is_at_most_2_6_looks_wide(rows, off):
    """Each among 33; the favourite's value is within a standard error of its prior."""
    labels, number = np.ones(rows, np.int64), itertools.count()

    def scoring(accuracy):
        return np.roll(np.arange(rows) < round(accuracy * rows), next(number)).astype(np.int64)

    guard = made_guard(
        None, labels, queries=100, charges=1, choices=[33] * 3, estimate=0.87, classes=[0, 1], seed=0
    )
    for _ in range(3):
        favourite = scoring(0.87 + off * math.sqrt(0.87 * 0.13 / rows))
        priors = [0.87, *[0.82] * 32]
        choice = guard.choose([favourite, *(scoring(0.6) for _ in range(32))], priors)
        assert choice.index == 0
        assert choice.answer.nats <= 3.0
    last = guard.final(scoring(0.87))
    assert last.high - last.low <= 2.6 * 2.0 * guard.plan.one_look


def test_several_are_told_together_each_a_little_wider(make_guard, scoring):
    guard = make_guard()
    answers = guard.final([scoring(0.7), scoring(0.6), scoring(0.8)], name="last")
    assert [answer.value for answer in answers] == [0.7, 0.6, 0.8]
    assert [(answer.query, answer.way, answer.name) for answer in answers] == [
        (1, "final", "last"),
        (2, "final", "last"),
        (3, "final", "last"),
    ]
    for answer in answers:
        low, high = ends(answer.value, places=0.0, number=number_of(0), answers=3)
        assert answer.low == pytest.approx(low, abs=1 / ROWS)
        assert answer.high == pytest.approx(high, abs=1 / ROWS)
    assert guard.queries_asked == 0  # a final takes none of them


# ---- once


def test_a_part_of_a_final_replays_and_a_part_with_more_does_not(make_guard, place, scoring):
    guard = make_guard(place)
    one, other = guard.final([scoring(0.7), scoring(0.6)])
    assert guard.final([scoring(0.6), scoring(0.7)]) == [
        other._replace(replayed=True),
        one._replace(replayed=True),
    ]
    assert guard.final(scoring(0.6)).replayed
    refuses(Halted, "", guard.final, [scoring(0.6), scoring(0.5)])
    assert len(guard.history()) == 2


def test_it_is_allowed_after_the_last_charge(make_guard, place, spend, scoring):
    guard = make_guard(place)
    told = sum(answer.nats for answer in spend(guard))
    refuses(Halted, r"guard\.final\(model\) still certifies", guard.evaluate, scoring(0.6), prior=0.6)
    answer = guard.final(scoring(0.7))
    low, high = ends(0.7, places=places_of(3, 3), number=number_of(3), nats=told)
    assert (answer.low, answer.high) == (pytest.approx(low, abs=1 / ROWS), pytest.approx(high, abs=1 / ROWS))
    assert guard.halt_reason == "final"
    refuses(Halted, "", guard.final, scoring(0.6))


def test_it_is_allowed_after_the_last_query(make_guard, scoring):
    guard = make_guard(queries=3)
    guard.evaluate([scoring(0.7, k) for k in range(3)], prior=[0.7] * 3)
    assert guard.halt_reason == "queries"
    answers = guard.final([scoring(0.7), scoring(0.6)])
    assert [answer.query for answer in answers] == [4, 5]
    assert guard.queries_asked == 3


def test_the_next_holdout_goes_on(make_guard, ledger, labels, scoring):
    guard = make_guard(ledger)
    guard.final(scoring(0.7))
    rng = np.random.default_rng(9)
    fresh = rng.integers(0, 2, 2 * ROWS)
    rotation = guard.rotate(None, fresh)  # a final is a halt
    answer = rotation.guard.final(fresh)
    assert (answer.value, answer.query) == (1.0, 1)
    refuses(RotatedError, "", guard.final, scoring(0.6))
    assert guard.history()["value"].tolist() == [0.7]
    assert verify(ledger).problems == []
    assert np.array_equal(rotation.y, labels)


# ---- what is refused, and what fails


def test_a_failure_of_one_does_not_take_the_others_answers(make_guard, ledger, scoring):
    guard = make_guard(ledger, metric=fragile())
    failed, other = answers = guard.final([scoring(0.9, 100), scoring(0.7)])
    assert isinstance(failed, ModelError)
    assert "row 0" not in str(failed)
    assert (answers.best_index, answers.best) == (1, other)
    assert guard.final(scoring(0.7)).value == 0.7  # it was given, together with the failure
    assert guard.history()["told"].tolist() == ["failed, weight 524288", "value 0.7, weight 524288"]


def test_if_every_model_of_a_final_fails_it_is_raised(make_guard, scoring):
    guard = make_guard(metric=fragile())
    caught = refuses(ModelError, "", guard.final, [scoring(0.9, 100), scoring(0.9, 101)])
    assert caught.answers == [None, None]


def test_of_several_the_best_by_its_lower_end_is_named_and_all_intervals_hold_together(
    make_guard, ledger, scoring
):
    guard = make_guard(ledger)
    accuracies, priors = [0.7, 0.8, 0.75, 0.8], [0.71, 0.78, 0.76, 0.6]
    answers = guard.final([scoring(one, 9 * place) for place, one in enumerate(accuracies)], priors)
    assert [answer.value for answer in answers] == accuracies
    assert [answer.prior for answer in answers] == priors
    assert (
        answers.best_index == 1
    )  # both have .8, but this one was expected to be good, and so has the narrower interval
    assert answers.best.low == max(answer.low for answer in answers) > answers[3].low
    weights = [int(answer.told.split("weight ")[1]) for answer in answers]
    assert sorted(range(4), key=weights.__getitem__) == sorted(range(4), key=priors.__getitem__)
    assert sum(weights) <= 2**20
    for answer, weight in zip(answers, weights, strict=True):
        low, high = ends(answer.value, places=0.0, number=number_of(0), answers=2**20 / weight)
        assert (answer.low, answer.high) == pytest.approx((low, high), abs=1 / ROWS)
    assert verify(ledger).problems == []


def test_a_model_that_is_named_twice_is_one_answer(make_guard, ledger, scoring):
    answers = make_guard(ledger).final([scoring(0.7), scoring(0.6), scoring(0.7)], [0.6, 0.6, 0.7])
    assert answers[0] == answers[2]
    assert (answers[0].value, answers[0].prior) == (0.7, 0.7)
    assert verify(ledger).queries == 2
    assert verify(ledger).problems == []
    assert verify(ledger).problems == []


# ---- where it stands


# ---- of all threads and processes, one


def _final(guard, predictions):
    try:
        return guard.final(predictions).query
    except Halted as halt:
        return halt.reason


def test_workers_give_one_final(make_guard, ledger, scoring):
    guard = make_guard(ledger)
    outcomes = Parallel(n_jobs=2, backend="loky")(delayed(_final)(guard, scoring(0.7, k)) for k in range(6))
    assert sorted(map(str, outcomes)) == ["1", *["final"] * 5]
    assert len(guard.history()) == 1
    assert verify(ledger).problems == []


_FINAL = """
import sys
import numpy as np
from reusable_holdout import ReusableHoldout
labels = np.random.default_rng(0).integers(0, 2, 2_000)
guard = ReusableHoldout.open(sys.argv[1], None, labels)
dies(sys.argv[2])
guard.final([labels, 1 - labels])
"""


@DEATHS
def test_a_final_that_was_killed_was_given_whole_or_not_at_all(
    make_guard, ledger, labels, scoring, moment, recorded
):
    guard = make_guard(ledger)
    died(Child(DYING + _FINAL, ledger, moment))
    assert len(guard.history()) == 2 * recorded
    if recorded:
        refuses(Halted, "", guard.final, scoring(0.7))
        assert [answer.value for answer in guard.final([labels, 1 - labels])] == [1.0, 0.0]
    else:
        assert guard.final(scoring(0.7)).value == 0.7
    assert verify(ledger).problems == []


def test_a_handle_of_before_knows_that_it_was_given(make_guard, ledger, scoring):
    guard = make_guard(ledger)
    handle = pickle.dumps(guard)
    guard.final(scoring(0.7))
    with pickle.loads(handle) as other:
        assert other.halt_reason == "final"
        refuses(Halted, "", other.evaluate, scoring(0.6), prior=0.6)


# ---- verification

# of one column alone each change is tried in test_forged_facts.py, on every released ledger
FORGERIES = {  # of 1 (agreed), 2 (charged), 3 (revealed), 4 (chosen), 5 and 6 (the final)
    "a reveal that agrees": "told = 'agreed' WHERE query = 3",
    "a reveal that is told as a value": "told = 'value 0.7' WHERE query = 3",
    "a reveal's nats": "nats = nats / 2, spent_nats = spent_nats - nats / 2 WHERE query = 3",
    "a reveal that took none": "asked = asked - 1 WHERE query >= 3",
    "another winner's rank": "told = replace(told, 'rank 1', 'rank 2') WHERE query = 4",
    "a choice among more": "told = replace(told, 'of 2', 'of 3') WHERE query = 4",
    "a choice that took one": "asked = asked - 1 WHERE query >= 4",
    "a choice that took more": "asked = asked + 1 WHERE query >= 4",
    "a choice's other cell": "told = replace(told, 'cell 5', 'cell 6') WHERE query = 4",
    "a final's value and prior": "value = 0.8, prior = 0.8 WHERE query = 5",
    "what a final told": "told = 'value 0.8, weight 524288' WHERE query = 5",
    "a final that told no number": "told = 'value x, weight 524288' WHERE query = 5",
    "a final beyond the bounds": "told = 'value 1.5, weight 524288', value = 1.5, prior = 1.5 WHERE query = 5",
    "a final that took a query": "asked = asked + 1 WHERE query >= 5",
    "a final that was a check": "kind = 'check', told = 'agreed' WHERE query = 6",
    "a final in two commits": "batch = 6 WHERE query = 6",
    "a final's weight": "told = replace(told, 'weight 524288', 'weight 600000') WHERE query = 5",
    "a final without a weight": "told = 'value 0.7' WHERE query = 5",
}


@pytest.fixture
def all_kinds(make_guard, ledger, scoring):
    """Ledger of six answers, one of each kind and a final of two."""
    with make_guard(ledger, **ASKING, choices=[2]) as guard:
        guard.evaluate(scoring(0.7), prior=0.7)
        guard.evaluate(scoring(0.7), prior=0.85)
        guard.reveal(scoring(0.7), prior=0.7)
        guard.choose([scoring(0.7), scoring(0.6)], [0.7, 0.6])
        guard.final([scoring(0.7), scoring(0.6)])
    assert verify(ledger).problems == []
    return ledger


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_row_is_found(all_kinds, name):
    sql(all_kinds, (f"UPDATE answers SET {FORGERIES[name]}",))
    seal_again(all_kinds)
    assert not verify(all_kinds).sound


@pytest.mark.parametrize("kind", ["final", "check", "reveal", "choose", "compare"])
def test_an_answer_after_the_final_is_found(make_guard, ledger, scoring, monkeypatch, kind):
    """By a guard that forgets that it has ended, each of whose rows is certified and sealed as it should be."""
    guard = make_guard(ledger, **ASKING, choices=[2])
    guard.final(scoring(0.7))
    for way in every_way(guard):
        monkeypatch.setattr(way, "halt_reason", lambda _: None)
    fresh = scoring(0.6)
    {
        "final": lambda: guard.final(fresh),
        "check": lambda: guard.evaluate(fresh, prior=0.6),
        "reveal": lambda: guard.reveal(fresh, prior=0.6),
        "choose": lambda: guard.choose([fresh], [0.6]),
        "compare": lambda: guard.compare(fresh, scoring(0.7), prior=-0.1),
    }[kind]()
    monkeypatch.undo()
    problems = verify(ledger).problems
    assert "query 2 was answered after the guard had to halt" in problems


@pytest.mark.parametrize("told", ["cell 0", "agreed"])
def test_a_final_in_one_commit_with_another_answer_is_found(make_guard, ledger, scoring, told):
    """Its interval would be that of the state before, as if the charge in its own commit had told nothing."""
    with make_guard(ledger) as guard:
        guard.evaluate(scoring(0.02), prior=0.99)
        guard.final(scoring(0.7))
    sql(
        ledger,
        ("UPDATE answers SET seal = NULL WHERE query = 1",),
        ("UPDATE answers SET batch = 1 WHERE query = 2",),
    )
    recompute(ledger, 1, told=told)
    assert verify(ledger).problems == ["query 2 is in a batch of another kind of question"]
