"""A guarded board of claims: whose question it is, whose allowance, what is kept, and who is told what."""

import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import refuses
from children import Child
from guard.forging import all_rows, seal_again, sql
from made_guards import made_guard
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import Halted, InputError
from reusable_holdout.guard.configuration import Configuration
from reusable_holdout.ways import State, Told
from reusable_holdout.ways.table import Ways

ROWS = 4_000
LABELS = np.random.default_rng(5).integers(0, 2, ROWS)


def right(accuracy, variant=0):
    """Predictions of exactly this accuracy."""
    wrong = np.random.default_rng([7, variant]).permutation(ROWS) >= round(accuracy * ROWS)
    return np.where(wrong, 1 - LABELS, LABELS)


@pytest.fixture
def board(tmp_path, closed_at_the_end):
    def make(ledger="guard.db", **changes):
        settings = {"queries": 200, "prior_error": 0.01, "estimate": 0.75, "unwitnessed": True} | changes
        place = None if ledger is None else tmp_path / ledger
        return closed_at_the_end(made_guard(None, LABELS, policy="claims", ledger=place, **settings))

    return make


def led(guard):
    """A board with a lead that none of the others claims."""
    assert guard.evaluate(right(0.95), prior=0.95, series="leader").told == "measured 0"
    return guard


def sound(guard):
    found = verify(guard.ledger)
    assert found.sound, found.problems
    return True


def test_the_same_predictions_are_one_question_whoever_claims_what_of_them(board):
    guard = led(board())
    first = guard.evaluate(right(0.7), prior=0.5, series="low")
    assert first.charged
    assert first.charges_left == 1
    again = guard.evaluate(right(0.7), prior=0.7, series="other")
    assert again.replayed
    assert again.charges_left == 2
    assert (again.value, again.low, again.high, again.query) == (
        first.value,
        first.low,
        first.high,
        first.query,
    )
    anew = guard.evaluate(right(0.7), prior=0.7, series="other", anew=True)
    assert not anew.replayed
    assert (anew.told, anew.value) == ("agreed", 0.7)
    same = guard.evaluate(right(0.7), prior=0.7, series="other", anew=True)
    assert same == anew._replace(replayed=True)
    assert guard.queries_asked == 3
    assert sound(guard)


def test_whoever_has_nothing_left_fixes_nobodys_answer(board):
    guard = led(board())
    for variant in range(2):
        assert guard.evaluate(right(0.6, variant), prior=0.9, series="spent").charged
    lost = guard.evaluate(right(0.7), prior=0.7, series="spent")
    assert (lost.told, lost.low, lost.high, lost.charges_left) == ("not certified", 0.0, 1.0, 0)
    assert guard.queries_asked == 3
    fresh = guard.evaluate(right(0.7), prior=0.7, series="fresh")
    assert (fresh.told, fresh.replayed) == ("agreed", False)
    shown = guard.evaluate(right(0.7), prior=0.7, series="spent")
    assert (shown.told, shown.replayed) == ("agreed", True)
    assert [guard.charges_left_of(name) for name in ("spent", "fresh", "nobody")] == [0, 2, 2]
    history = guard.history()
    assert history["charges_left"].tolist() == [2, 1, 0, 0, 2]
    assert history["asked"].tolist() == [1, 2, 3, 3, 4]
    assert sound(guard)


def test_nobody_is_halted_by_others_but_the_declared_number_and_a_final_end_it(board):
    guard = led(board(queries=13))
    for variant in range(8):
        assert guard.evaluate(right(0.6, variant), prior=0.9, series=f"liar {variant}").charged
    assert not guard.halted
    assert guard.reveal(right(0.8), prior=0.8).value == pytest.approx(0.8, abs=0.02)
    answers = guard.evaluate([right(0.7, k) for k in range(3)], prior=[0.7] * 3, series="honest")
    assert [answer.told for answer in answers] == ["agreed"] * 3
    assert guard.halt_reason == "queries"
    refuses(Halted, "all 13 declared queries", guard.evaluate, right(0.7, 9), prior=0.7)
    assert guard.evaluate(right(0.7, 0), prior=0.1, series="late").replayed
    last = guard.final(right(0.8))
    assert last.low < 0.8 < last.high
    refuses(Halted, "final was given", guard.evaluate, right(0.7, 9), prior=0.7)
    assert sound(guard)


def test_a_batch_that_is_halted_on_the_way_keeps_its_answers(board):
    guard = board(queries=2)
    halt = refuses(Halted, "", guard.evaluate, [right(0.7, k) for k in range(4)], prior=[0.7] * 4)
    assert [answer.query for answer in halt.answers] == [1, 2]


def test_others_make_intervals_wider_and_each_answer_keeps_its_own(board):
    guard = led(board())
    widths = []
    for variant in range(12):
        honest = guard.evaluate(right(0.7, variant), prior=0.7, series="honest")
        widths.append(honest.high - honest.low)
        guard.evaluate(right(0.6, 100 + variant), prior=0.9, series=f"liar {variant}")
    assert widths == sorted(widths)
    assert widths[-1] > 1.05 * widths[0]
    told = guard.evaluate(right(0.7, 1), prior=0.7, series="honest")
    assert told.high - told.low == widths[1]


def test_another_process_another_thread_and_another_opening_follow_the_same_board(board, closed_at_the_end):
    guard = board(seed=3)
    twin = pickle.loads(pickle.dumps(guard))
    ask = [guard, twin, closed_at_the_end(ReusableHoldout.open(guard.ledger, None, LABELS, seed=3))]

    def claim(number):
        prior = 0.9 if number % 5 == 0 else 0.7
        one = ask[number % 3]
        return one.evaluate(right(0.7, number), prior=prior, series=f"team {number % 7}")

    with ThreadPoolExecutor(3) as pool:
        answers = list(pool.map(claim, range(60)))
    assert sorted(answer.query for answer in answers) == list(range(1, 61))
    assert sound(guard)
    assert len({one.charges_left_of("team 0") for one in ask}) == 1


_KILLED = """
import json, os, signal, sys
import numpy as np
from reusable_holdout import Plan, ReusableHoldout
labels = np.random.default_rng(5).integers(0, 2, 4_000)
plan = Plan(board="claims", queries=200, prior_error=0.01, estimate=0.75)
guard = ReusableHoldout(None, labels, plan=plan, allow={"no witness"}, seed=3, ledger=sys.argv[1])
for number in range(200):
    wrong = np.random.default_rng([7, number]).permutation(4_000) >= 2_800
    prior = 0.9 if number % 4 == 0 else 0.7
    answer = guard.evaluate(
        np.where(wrong, 1 - labels, labels), prior=prior, series=f"team {number // 10}"
    )
    print(json.dumps([answer.query, answer.value, answer.told, answer.charges_left]), flush=True)
"""


def test_a_kill_loses_no_charge_and_gives_no_free_answer(tmp_path, closed_at_the_end):
    ledger, told = tmp_path / "guard.db", []
    child = Child(_KILLED, ledger)
    told += [json.loads(child.stdout.readline()) for _ in range(23)]
    child.kill()
    told += [json.loads(line) for line in child.communicate().splitlines() if line.endswith("]")]
    guard = closed_at_the_end(ReusableHoldout.open(ledger, None, LABELS, seed=3))
    history = guard.history()
    assert len(history) - len(told) in {0, 1}
    for (query, value, name, left), row in zip(told, history.itertuples(), strict=False):
        assert (query, value, name, left) == (row.query, row.value, row.told, row.charges_left)
    assert sound(guard)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE answers SET told = 'agreed', charged = 0, value = prior WHERE query = 3",
        "UPDATE answers SET told = 'measured 2' WHERE query = 1",
        "UPDATE answers SET told = 'not certified', nats = 0 WHERE query = 4",
        "UPDATE answers SET prior = prior + 0.2, value = value + 0.2, low = low + 0.2, high = 1 WHERE query = 4",
    ],
)
def test_a_change_of_a_board_is_found_though_its_seals_are_made_again(board, tmp_path, change):
    guard = board()
    guard.evaluate(right(0.75), prior=0.75, series="a")
    guard.evaluate(right(0.7, 1), prior=0.7, series="a")
    assert guard.evaluate(right(0.6, 2), prior=0.75, series="b").charged
    guard.evaluate(right(0.6, 3), prior=0.6, series="b")
    guard.evaluate(right(0.7, 4), prior=0.7, series="c")
    guard.close()
    sql(tmp_path / "guard.db", (change,))
    seal_again(tmp_path / "guard.db")
    assert not verify(tmp_path / "guard.db").sound


def test_claims_are_not_passed_off_as_a_batch_that_shares_the_history_before_it(board, tmp_path):
    """Each claim's outcomes depend on those before it; a batch's intervals would be narrower than they may be."""
    ledger, guard = tmp_path / "guard.db", led(board())
    for variant in range(4):
        guard.evaluate(right(0.6, variant), prior=0.75, series=f"liar {variant}")
    honest = guard.evaluate(right(0.7), prior=0.7, series="honest")
    guard.close()
    sql(ledger, ("UPDATE answers SET seal = NULL WHERE query < 6",), ("UPDATE answers SET batch = 1",))
    text, rows, _ = all_rows(ledger)
    way = Ways(Configuration.parse(text).view.kept).claim
    for row, terms in zip(rows, way.recalled(rows), strict=True):
        low, high = way.interval(Told.parse(row.told), terms, way.length(State()))
        sql(ledger, ("UPDATE answers SET low = ?, high = ? WHERE query = ?", low, high, row.query))
    seal_again(ledger)
    assert high - low < honest.high - honest.low
    problems = verify(ledger).problems
    assert problems == [
        f"query {query} is in a batch, but its kind of question has no batches" for query in range(2, 7)
    ]


def test_what_is_asked_for_says_whose_charges_are_left(board):
    guard = led(board())
    for variant in range(3):
        guard.evaluate(right(0.6, variant), prior=0.9, series=f"liar {variant}")
    revealed = guard.reveal(right(0.8), prior=0.8)
    assert revealed.charges_left == guard.charges_left == 2
    assert guard.reveal(right(0.8), prior=0.8) == revealed._replace(replayed=True)
    assert guard.choose([right(0.8, 1), right(0.7, 1)], [0.8, 0.7]).answer.charges_left == 2
    guard.evaluate(right(0.6, 3), prior=0.9)
    assert guard.reveal(right(0.8), prior=0.8).charges_left == guard.charges_left == 1
    assert guard.final(right(0.8)).charges_left == 1
    assert guard.history()["charges_left"].tolist() == [2, 1, 1, 1, 2, 2, 1, 1]


def test_a_model_is_claimed_by_its_cross_validation_and_asked_anew_as_predictions_are(closed_at_the_end):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(2_000, 2))
    y = (X[:, 0] + rng.normal(size=2_000) > 0).astype(int)
    settings = {"queries": 50, "prior_error": 0.02, "estimate": 0.75}
    guard = closed_at_the_end(made_guard(X[1_000:], y[1_000:], policy="claims", **settings))
    model = LogisticRegression().fit(X[:1_000], y[:1_000])
    low = guard.evaluate(model, prior=0.4, series="low")
    assert low.charged
    replay = guard.evaluate(model, X[:1_000], y[:1_000], series="own")
    assert (replay.replayed, replay.query) == (True, 1)
    anew = guard.evaluate(model, X[:1_000], y[:1_000], series="own", anew=True)
    assert (anew.replayed, anew.charged, anew.query) == (False, False, 2)
    plain = closed_at_the_end(made_guard(X[1_000:], y[1_000:], queries=20, tolerance=0.2))
    refuses(InputError, "board of claims", plain.evaluate, model, prior=0.7, anew=True)


def test_what_is_not_certified_is_printed_so(board):
    guard = led(board(charges=1))
    assert guard.evaluate(right(0.7), prior=0.9, series="a").charged
    stands = guard.evaluate(right(0.7, 1), prior=0.7, series="b")
    beyond = guard.evaluate(right(0.6), prior=0.99, series="a")
    assert (beyond.told, beyond.low, beyond.high) == ("not certified", 0.0, 1.0)
    assert str(beyond) == (
        f"0.9900 in [0.0000, 1.0000] (not certified; query {beyond.query}, 0 charges left)"
    )
    again = guard.evaluate(right(0.6), prior=0.99, series="a")
    assert str(again).startswith("0.9900 in [0.0000, 1.0000] (not certified, replayed; ")
    assert "not certified" not in str(stands)


def test_another_metric_of_the_rows_has_claims_of_its_own(board):
    guard = board()
    guard.evaluate(right(0.7), prior=0.7, series="a")
    other = guard.on("balanced_accuracy", allow={"vacuous"})
    answer = other.evaluate(right(0.7), prior=0.7, series="a")
    assert (answer.told, answer.query) == ("measured 0", 3)
    assert sound(guard)


def test_a_board_goes_on_with_fresh_rows(board):
    guard = board()
    guard.evaluate(right(0.6), prior=0.9, series="a")
    fresh = np.random.default_rng(8).integers(0, 2, ROWS)
    rotation = guard.rotate(None, fresh, early=True)
    assert rotation.guard.plan.asks == "claims"
    assert rotation.guard.charges_left_of("a") == 2
    answer = rotation.guard.evaluate(fresh, prior=1.0, series="a")
    assert answer.told == "measured 0"
    rotation.guard.close()
    assert sound(guard)


def test_what_people_see_of_a_board_says_whose_the_charges_are(board):
    guard = board(None)
    assert repr(guard) == "<ReusableHoldout: accuracy, 4,000 rows, 0 of 200 claims asked, 0 charged>"
    assert not {"halts", "halted after"} & set(str(guard.plan).split())
