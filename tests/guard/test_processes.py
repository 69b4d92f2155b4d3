"""One budget, however many processes and threads ask."""

import json
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from cases import refuses
from children import Child
from guard.counting import AGREEMENT
from joblib import Parallel, delayed

from reusable_holdout import Answer, Metric, ReusableHoldout, verify
from reusable_holdout.errors import Halted, HandleError, InputError, LedgerError, LedgerKeyError
from reusable_holdout.guard.handle import read_private

PLENTY = {"charges": 25, "queries": 200, "threshold": 0.1}

_ASK_UNTIL_HALTED = """
import json, sys
import numpy as np
from made_guards import made_guard
from reusable_holdout.errors import Halted
ledger, offset, settings = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
labels = np.random.default_rng(0).integers(0, 2, 2_000)
right = np.where(np.arange(2_000) < 1_400, labels, 1 - labels)
guard = made_guard(None, labels, ledger=ledger, vacuous=True, **settings)

def ask(number):
    predictions = right.copy()
    predictions[2 * number + offset] ^= 1
    print(json.dumps(guard.evaluate(predictions, prior=0.85)), flush=True)

ask(0)
sys.stdin.readline()  # until the other has asked too
try:
    for number in range(1, 500):
        ask(number)
except Halted as halt:
    print(json.dumps([halt.reason, len(halt.history)]), flush=True)
"""


@pytest.fixture
def plenty(make_guard, ledger):
    return make_guard(ledger, **PLENTY)


def test_two_processes_share_one_budget_exactly(ledger, settings, plenty):
    told = json.dumps({**settings, **PLENTY})
    children = [Child(_ASK_UNTIL_HALTED, ledger, offset, told) for offset in (0, 1)]
    printed = [[json.loads(process.stdout.readline())] for process in children]
    for process in children:
        process.stdin.write("go\n")
        process.stdin.flush()
    for lines, process in zip(printed, children, strict=True):
        lines += [json.loads(line) for line in process.communicate().splitlines()]
    assert [process.returncode for process in children] == [0, 0]
    assert [lines[-1] for lines in printed] == [["charges", 25]] * 2
    answers = [Answer(*line) for lines in printed for line in lines[:-1]]
    assert all(answer.charged for answer in answers)
    assert sorted(answer.query for answer in answers) == list(range(1, 26))
    assert sorted(answer.charges_left for answer in answers) == list(range(25))
    assert plenty.halt_reason == "charges"
    assert verify(ledger).problems == []


def tasks(guard, scoring, count):
    """Charged questions, for joblib; the guard travels as a handle."""
    return [delayed(guard.evaluate)(scoring(0.7, k), prior=0.85, name=str(k)) for k in range(count)]


@pytest.mark.usefixtures("fresh_workers")
def test_joblib_workers_share_one_budget_exactly(plenty, ledger, scoring):
    answers = Parallel(n_jobs=2, backend="loky")(tasks(plenty, scoring, 25))
    assert sorted(answer.query for answer in answers) == list(range(1, 26))
    assert [answer.name for answer in answers] == [str(k) for k in range(25)]
    assert all(answer.charged and not answer.replayed for answer in answers)
    assert plenty.history()["name"].tolist() == [
        answer.name for answer in sorted(answers, key=lambda a: a.query)
    ]
    assert plenty.charges_left == 0
    again = Parallel(n_jobs=2, backend="loky")(tasks(plenty, scoring, 25))
    assert all(answer.replayed for answer in again)
    assert [answer.value for answer in again] == [answer.value for answer in answers]
    assert verify(ledger).problems == []


@pytest.mark.parametrize("backend", ["loky", "threading", "sequential"])
def test_a_halt_in_a_worker_reaches_the_parent(plenty, scoring, backend):
    with pytest.raises(Halted, match="all 25 charges are spent") as halt:
        Parallel(n_jobs=2, backend=backend)(tasks(plenty, scoring, 40))
    assert halt.value.reason == "charges"
    assert halt.value.history["charged"].sum() == 25
    assert len(plenty.history()) == 25


def test_threads_share_one_budget_exactly(make_guard, ledger, scoring):
    for place in (None, ledger):
        guard = make_guard(place, **PLENTY)

        def ask(k, guard=guard):
            try:
                return guard.evaluate(scoring(0.7, k), prior=0.85)
            except Halted as halt:
                return halt.reason

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(ask, range(60)))
        answers = [outcome for outcome in outcomes if isinstance(outcome, Answer)]
        assert sorted(answer.query for answer in answers) == list(range(1, 26))
        assert outcomes.count("charges") == 35


def _reveal(guard, predictions):
    """Nats of a reveal, or that it was refused."""
    try:
        return guard.reveal(predictions, prior=0.99).nats
    except InputError:
        return "refused"


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_workers_share_what_is_set_aside_for_reveals(make_guard, ledger, scoring, backend):
    """Three of the dearest kind; whoever asks after the third is refused, and all charges are still answered."""
    guard = make_guard(ledger, reveals=3)
    outcomes = Parallel(n_jobs=2, backend=backend)(
        delayed(_reveal)(guard, scoring(0.02, k)) for k in range(9)
    )
    assert [type(outcome) for outcome in sorted(outcomes, key=str)] == [float] * 3 + [str] * 6
    assert guard.history()["asked"].tolist() == [1, 2, 3]
    left = [guard.evaluate(scoring(0.02, k), prior=0.99).charges_left for k in range(3)]
    assert left == [2, 1, 0]
    assert verify(ledger).problems == []


def test_threads_that_ask_the_same_question_pay_once(plenty, scoring):
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: plenty.evaluate(scoring(0.9), prior=0.5), range(40)))
    assert [answer.replayed for answer in answers].count(False) == 1
    assert {answer.value for answer in answers} == {0.7}
    assert plenty.queries_asked == 1


def test_models_that_predict_at_once_leave_output_warnings_and_logs_as_they_were(make_guard):
    """The first to begin is the first to end: what each restores must not be what another had put there."""
    began, ended = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    class Waiting:
        def __init__(self, place):
            self.place = place

        def predict(self, X):
            if self.place == 0:
                began[0].set()
                began[1].wait(1)  # unless the guard lets one predict at a time
            elif self.place == 1:
                began[1].set()
                ended[0].wait(1)
            return np.zeros(len(X), dtype=int)

    guard = make_guard(X=np.zeros((2_000, 1)))
    guard.evaluate(Waiting(2), prior=0.4)  # imports what puts warning filters of its own

    def ask(place):
        if place:
            began[0].wait()
        guard.evaluate(Waiting(place), prior=0.5)
        ended[place].set()

    def outside():
        return (
            sys.stdout,
            sys.stderr,
            logging.root.manager.disable,
            list(warnings.filters),
            warnings.showwarning,
        )

    before = outside()
    try:
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(ask, range(2)))
        assert outside() == before
    finally:
        sys.stdout, sys.stderr = before[:2]
        logging.disable(before[2])
    assert guard.queries_asked == 3


def test_guards_that_are_made_at_once_are_one_guard(make_guard, ledger, scoring):
    together = threading.Barrier(8)

    def make(_):
        together.wait()
        return make_guard(ledger, noise=0.001)

    with ThreadPoolExecutor(8) as pool:
        guards = list(pool.map(make, range(8)))
    for k, guard in enumerate(guards):
        assert guard.evaluate(scoring(0.7, k), prior=0.7).query == k + 1
    assert {guard.queries_asked for guard in guards} == {8}


# ---- pickles


def test_a_pickled_guard_is_a_handle_to_the_same_budget(plenty, scoring):
    other = pickle.loads(pickle.dumps(plenty))
    assert other.evaluate(scoring(0.7), prior=0.85).query == 1
    assert plenty.evaluate(scoring(0.7, 1), prior=0.85).query == 2
    assert plenty.evaluate(scoring(0.7), prior=0.85).replayed
    assert other.queries_asked == 2
    assert pickle.loads(pickle.dumps(other)) is other  # one for each process


def test_a_handle_carries_neither_the_holdout_nor_the_key(plenty, ledger, labels):
    blob = pickle.dumps(plenty)
    assert len(blob) < 1_000
    assert labels.tobytes()[:64] not in blob
    key = ledger.with_name("guard.db.key").read_text().strip()
    assert key.encode() not in blob
    assert bytes.fromhex(key) not in blob
    assert ledger.with_name("guard.db.holdout").stat().st_mode & 0o777 == 0o600


def test_a_handle_works_in_a_process_that_never_saw_the_guard(plenty, scoring, tmp_path):
    plenty.evaluate(scoring(0.7), prior=0.85)
    (tmp_path / "guard.pickle").write_bytes(pickle.dumps(plenty))
    script = "import pickle, sys; print(pickle.load(open(sys.argv[1], 'rb')).queries_asked)"
    command = [sys.executable, "-c", script, str(tmp_path / "guard.pickle")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1\n"


def test_a_handle_follows_a_change_of_folder(make_guard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blob = pickle.dumps(make_guard("guard.db"))
    monkeypatch.chdir("/")
    assert pickle.loads(blob).queries_asked == 0


def test_a_guard_in_memory_cannot_leave_its_process(make_guard):
    refuses(HandleError, "ledger=", pickle.dumps, make_guard())


def test_a_guard_whose_key_is_in_no_file_cannot_leave_its_process(make_guard, ledger):
    guard = make_guard(ledger, key=bytes(range(32)))
    refuses(HandleError, "key=Path", pickle.dumps, guard)
    assert not ledger.with_name("guard.db.holdout").exists()


def test_a_metric_that_cannot_be_pickled_keeps_the_guard_in_its_process(make_guard, ledger):
    own = Metric(name="own", loss=lambda y, p: y == p, **AGREEMENT)
    guard = make_guard(ledger, metric=own)
    refuses(HandleError, "importable", pickle.dumps, guard)
    assert [path.name for path in ledger.parent.glob("*holdout*")] == []


def test_a_holdout_that_others_can_read_is_refused(plenty, ledger):
    blob = pickle.dumps(plenty)
    ledger.with_name("guard.db.holdout").chmod(0o644)
    script = "import pickle, sys; pickle.loads(bytes.fromhex(sys.argv[1])).queries_asked"
    done = subprocess.run(
        [sys.executable, "-c", script, blob.hex()], capture_output=True, text=True, check=False
    )
    assert "only its owner may read" in done.stderr
    refuses(LedgerKeyError, "", pickle.loads(blob).history)


def test_a_holdout_that_another_user_wrote_is_refused(plenty, ledger, monkeypatch):
    """Reading it runs what its writer put there."""
    pickle.dumps(plenty)
    monkeypatch.setattr(os, "getuid", lambda: 12_345)
    refuses(LedgerKeyError, "only its owner", read_private, ledger.with_name("guard.db.holdout"))


def test_the_parts_that_know_the_holdout_cannot_be_pickled(plenty):
    for part in (
        plenty._view.holdout,
        plenty._view.holdout.bound,
        plenty._view.ways.main._noise,
        plenty._view.content,
    ):
        refuses((HandleError, TypeError), "", pickle.dumps, part)
    refuses((HandleError, TypeError), "", pickle.dumps, plenty._view.ways.main)


def test_a_handle_opens_again_after_its_guard_was_closed(plenty):
    blob = pickle.dumps(plenty)
    with pickle.loads(blob) as guard:
        assert guard.queries_asked == 0
    assert pickle.loads(blob).queries_asked == 0


def test_a_handle_never_opens_a_guard_of_a_ledger_that_is_gone(make_guard, ledger, labels, scoring):
    with make_guard(ledger, **PLENTY) as old:
        pickle.loads(pickle.dumps(old))
    for path in ledger.parent.iterdir():
        path.unlink()
    new = make_guard(ledger, y=1 - labels, **PLENTY)  # another holdout under the same name
    answer = pickle.loads(pickle.dumps(new)).evaluate(scoring(0.7), prior=0.85)
    assert (answer.told, answer.value) == ("cell 2", 0.25)  # of the new labels, 0.3; of the old it is cell 4
    assert new.queries_asked == 1


# ---- forks


def in_a_fork(ask):
    """Exit code of a forked child that asks; killed if it hangs."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(5)
        ask()
        code = 0
    except LedgerError:
        code = 3
    finally:
        os._exit(code)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_shares_the_budget_of_its_parent(plenty, ledger, scoring):
    plenty.evaluate(scoring(0.7, 0), prior=0.85)
    for k in range(1, 6):
        assert in_a_fork(lambda k=k: plenty.evaluate(scoring(0.7, k), prior=0.85)) == 0
        plenty.evaluate(scoring(0.7, 10 * k), prior=0.85)
    history = plenty.history()
    assert history["query"].tolist() == list(range(1, 12))
    assert history["charges_left"].tolist() == list(range(24, 13, -1))
    assert verify(ledger).problems == []


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_child_that_closes_the_guard_leaves_the_parents_open(plenty, scoring):
    assert in_a_fork(plenty.close) == 0
    assert plenty.evaluate(scoring(0.7), prior=0.85).query == 1


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_while_another_thread_asks_does_not_hang(plenty, scoring):
    held, done = threading.Event(), threading.Event()

    def hold():
        with plenty._view.ledger._connection.lock:
            held.set()
            done.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    try:
        assert in_a_fork(lambda: plenty.evaluate(scoring(0.7), prior=0.85)) == 0
    finally:
        done.set()
        thread.join()


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_does_not_double_a_budget_in_memory(make_guard, scoring):
    guard = make_guard(**PLENTY)
    code = in_a_fork(lambda: guard.evaluate(scoring(0.7), prior=0.85))
    # either the child is refused, or the parent knows of its answer
    assert code == 3 or guard.queries_asked == 1


def test_two_guards_of_one_file_in_one_process_are_one_budget(make_guard, ledger, scoring):
    guards = [make_guard(ledger, **PLENTY) for _ in range(3)]
    for k in range(25):
        answer = guards[k % 3].evaluate(scoring(0.7, k), prior=0.85)
        assert (answer.query, answer.charges_left) == (k + 1, 24 - k)
    for guard in guards:
        refuses(Halted, "", guard.evaluate, scoring(0.6), prior=0.6)
    assert isinstance(guards[0], ReusableHoldout)
