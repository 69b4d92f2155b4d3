"""One budget on every backend of joblib: never exceeded, nothing paid twice, answers in the order of the questions."""

import numpy as np
import pytest
from joblib import Parallel, delayed, parallel_config
from reusable_holdout_sklearn import GuardedSearchCV
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV

from reusable_holdout import Answer, verify
from reusable_holdout.errors import Halted

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
    pytest.mark.long("integrations/reusable_holdout_sklearn", "reusable_holdout"),
]


def test_workers_share_one_budget_exactly(make_guard, predictions, backend):
    guard = make_guard()
    tasks = [delayed(guard.evaluate)(predictions(k), prior=0.85, name=str(k)) for k in range(25)]
    with parallel_config(backend, n_jobs=2):
        answers = Parallel()(tasks)
        again = Parallel()(tasks)
    assert sorted(answer.query for answer in answers) == list(range(1, 26))
    assert [answer.name for answer in answers] == [str(k) for k in range(25)]
    assert all(answer.charged and not answer.replayed for answer in answers)
    assert sorted(answer.charges_left for answer in answers) == list(range(25))
    assert all(answer.replayed for answer in again)
    assert [answer.query for answer in again] == [answer.query for answer in answers]
    assert (guard.charges_left, guard.queries_asked) == (0, 25)
    assert verify(guard.ledger).problems == []


def _ask(guard, predictions, name):
    """Ask, and give the answer or the reason of the halt."""
    try:
        return guard.evaluate(predictions, prior=0.85, name=name)
    except Halted as halt:
        return halt.reason


@pytest.mark.parametrize(
    ("jobs", "repetitions"), [(2, 10), pytest.param(4, 100, marks=pytest.mark.long("reusable_holdout"))]
)
def test_workers_never_exceed_the_budget_in_many_repetitions(make_guard, predictions, jobs, repetitions):
    """Of six questions, two are asked by all workers and four by one each: 12 tasks on four charges."""
    asked = [0, 1] * 4 + [2, 3, 4, 5]
    order = np.random.default_rng(9)
    halts = 0
    with Parallel(n_jobs=jobs, backend="loky") as pool:
        for repetition in range(repetitions):
            guard = make_guard(f"{repetition}.db", charges=4)
            numbers = order.permutation(asked).tolist()
            outcomes = pool(delayed(_ask)(guard, predictions(number), str(number)) for number in numbers)
            answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
            paid = [answer for answer in answers if not answer.replayed]
            assert sorted(answer.query for answer in paid) == [1, 2, 3, 4]
            assert len({answer.name for answer in paid}) == 4  # each question once
            history = guard.history()
            assert int(history["charged"].sum()) == len(history) == 4
            released = dict(zip(history["query"], history["value"], strict=True))
            assert [answer.value for answer in answers] == [released[answer.query] for answer in answers]
            halts += outcomes.count("charges")
            assert len(answers) + outcomes.count("charges") == len(asked)
            for number, outcome in zip(numbers, outcomes, strict=True):
                assert outcome == "charges" or outcome.name == str(number)  # in the order of the questions
            guard.close()
    assert halts >= 2 * repetitions


@pytest.mark.parametrize(
    ("ask", "room"), [("choose", {"choices": [4]}), ("evaluate", {"threshold": 0.01})], ids=str
)
def test_a_guarded_search_asks_and_is_answered_the_same_on_every_backend(make_guard, backend, ask, room):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3_000, 4))
    y = (X[:, 0] + rng.normal(size=3_000) > 0).astype(int)
    searches, histories, questions = [], [], []
    for name, n_jobs, chosen in (("serial.db", 1, "loky"), ("parallel.db", 2, backend)):
        guard = make_guard(name, X=X[1_000:], y=y[1_000:], seed=0, **room)
        grid = GridSearchCV(RandomForestClassifier(5, random_state=0), {"max_depth": [1, 2, 4, 6]}, cv=3)
        with parallel_config(chosen, n_jobs=n_jobs):
            searches.append(GuardedSearchCV(grid, guard, ask=ask, n_jobs=n_jobs).fit(X[:1_000], y[:1_000]))
        histories.append(guard.history().drop(columns="asked_at"))
        questions.append([row.digest for row in guard._view.ledger.rows()])
    serial, parallel = (search.guard_results_ for search in searches)
    assert serial["charged"].any() == (ask == "evaluate")
    assert parallel.equals(serial)
    assert searches[0].best_index_ == searches[1].best_index_
    assert histories[0].equals(histories[1])
    assert questions[0] == questions[1]
