"""A halt in a worker of `multiprocessing.pool` reaches the caller, at once, and as a halt."""

import itertools
import os
import subprocess
import sys

import pytest
from long_tests import GUARD

_SECONDS = 60  # of patience: without a halt that is told they would wait for ever
_SCRIPT = """
import multiprocessing, sys, time
from multiprocessing.pool import ThreadPool
import numpy as np
from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import Halted, InputError
from reusable_holdout_sklearn import guarded_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV

rng = np.random.default_rng(0)
labels, features = rng.integers(0, 2, 2_000), rng.normal(size=(2_000, 2))


def ask(number):
    predictions = np.where(np.random.default_rng(number).random(2_000) < 0.8, labels, 1 - labels)
    return guard.evaluate(predictions, prior=0.8).query


def ask_and_see(number):
    try:
        return ask(number)
    except Halted:
        return -1


def stubborn(number):
    for turn in range(5):
        try:
            ask(100 * number + turn)
        except Exception:
            continue
    return "swallowed"


def searched(number):
    rows, y = np.random.default_rng(number).normal(size=(60, 2)), np.arange(60) % 2
    grid = GridSearchCV(LogisticRegression(), {"C": list(range(1, 30))}, scoring=guarded_scorer(featured), cv=2)
    return grid.fit(rows, y).best_score_


def refused(number):
    return guard.evaluate(labels[:-1], prior=0.8)


def traced(number):
    # as a debugger, a profiler or a measurement of coverage does it
    sys.settrace(lambda *_: None)
    sys._getframe().f_trace = lambda *_: None
    try:
        ask(1_000 + number)
    finally:
        sys.settrace(None)


def begin(*pickled):
    global guard, featured
    guard, featured = pickled


WAYS = {
    "map": lambda pool: pool.map(ask, range(40)),
    "map by ones": lambda pool: pool.map(ask, range(40), chunksize=1),
    "imap_unordered": lambda pool: list(pool.imap_unordered(ask, range(40))),
    "apply_async": lambda pool: [pool.apply_async(ask, (number,)) for number in range(40)][-1].get(),
    "starmap": lambda pool: pool.starmap(ask, [(number,) for number in range(40)]),
}

if __name__ == "__main__":
    place, kind, way = sys.argv[1:]
    wish = {"queries": 12, "tolerance": 0.1, "allow": {"no witness"}}
    guard = ReusableHoldout(None, labels, estimate=0.8, ledger=place, **wish)
    featured = ReusableHoldout(features, labels, ledger=place + ".2", **wish)
    made = ThreadPool if kind == "threads" else multiprocessing.get_context(kind).Pool
    with made(2, begin, (guard, featured)) as pool:
        start = time.monotonic()
        try:
            WAYS[way](pool)
        except Halted as halt:
            print("halted", halt.reason, len(halt.history))
        print("after", time.monotonic() - start)
        for call in (stubborn, searched, traced):
            try:
                print(pool.apply_async(call, (7,)).get())
            except Halted as halt:
                print(call.__name__, halt.reason)
        print("seen", sorted(set(pool.map(ask_and_see, range(30, 50), chunksize=1))))
        try:
            pool.map(refused, range(3))
        except InputError:
            print("refused")
    print("asked", guard.queries_asked)
"""


@pytest.fixture
def run(tmp_path):
    """Run a script in a process of its own."""

    def run(script, *arguments, **settings):
        path = tmp_path / "loop.py"
        path.write_text(script)
        wish = {"capture_output": True, "text": True, "timeout": _SECONDS}
        return subprocess.run([sys.executable, str(path), *arguments], check=False, **wish, **settings)

    return run


_WAYS = ["map", "map by ones", "imap_unordered", "apply_async", "starmap"]
_ALWAYS = {("fork", "map"), ("threads", "apply_async")}  # a script each: seconds
LONG = pytest.mark.long(
    "reusable_holdout/guard", "reusable_holdout/ledger", "integrations/reusable_holdout_sklearn"
)


@pytest.mark.parametrize(
    ("kind", "way"),
    [
        pytest.param(*one, marks=() if one in _ALWAYS else LONG)
        for one in itertools.product(["fork", "spawn", "threads"], _WAYS)
    ],
)
def test_a_halt_reaches_the_caller_and_the_pool_goes_on(tmp_path, run, kind, way):
    ran = run(_SCRIPT, str(tmp_path / "guard.db"), kind, way)
    assert ran.returncode == 0, ran.stderr
    words = ran.stdout.splitlines()
    assert words[0] == "halted queries 12"
    assert float(words[1].split()[1]) < _SECONDS / 2
    assert words[2:5] == ["stubborn queries", "searched charges", "traced queries"]
    assert words[5].startswith("seen [-1")
    assert words[6:] == ["refused", "asked 12"]
    assert "Traceback" not in ran.stderr


_WRITING = """
import multiprocessing, os, signal, sys, time
from pathlib import Path
import numpy as np
from reusable_holdout import ReusableHoldout

folder = Path(sys.argv[1])


class Slow:
    def __reduce__(self):
        (folder / "writing").touch()
        time.sleep(1.0)
        return str, ("written",)


def write(guard):
    return Slow()


def work(guard):
    (folder / "working").touch()
    time.sleep(1_000)


def begun(name):
    while not (folder / name).exists():
        time.sleep(0.01)


def ended(worker):  # the pool's own thread may be about to note its exit code, for it waits, too
    last = time.monotonic() + 60
    while worker.exitcode is None and time.monotonic() < last:
        time.sleep(0.01)
    return worker.exitcode


if __name__ == "__main__":
    labels = np.random.default_rng(0).integers(0, 2, 2_000)
    guard = ReusableHoldout(None, labels, queries=5, tolerance=0.2, ledger=folder / "guard.db", witness=False)
    pools = []
    for task, name in ((write, "writing"), (work, "working")):
        pools.append(pool := multiprocessing.get_context(sys.argv[2]).Pool(1))
        (worker,) = pool._pool
        result = pool.apply_async(task, (guard,))
        begun(name)
        os.kill(worker.pid, signal.SIGTERM)
        if task is write:
            print(result.get(60))
        print(ended(worker), flush=True)
    os.killpg(0, signal.SIGKILL)  # a pool whose worker was ended while it waited for work cannot be closed
"""


@pytest.mark.long(*GUARD)
@pytest.mark.parametrize("kind", ["fork", "spawn"])
def test_a_worker_that_is_ended_writes_its_result_to_the_end_and_does_nothing_more(tmp_path, run, kind):
    """A worker that is ended with the lock of all writers leaves a pool that waits for it, for ever."""
    ran = run(_WRITING, str(tmp_path), kind, start_new_session=True)
    assert ran.stdout.split() == ["written", "1", "1"], ran.stderr


_SIGNALLED = """
import multiprocessing, os, signal, time
from reusable_holdout.guard.pools import write_to_the_end


def forks(number):
    asking, told = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(told, b".")
        while True:
            time.sleep(1)
    os.read(asking, 1)
    os.kill(child, signal.SIGTERM)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def tidies(marks):
    def end(*_):
        time.sleep(0.5)
        os.write(marks, b"tidied")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    os.write(marks, b"ready.")
    while True:
        time.sleep(1)


def begin(_):
    write_to_the_end()


reading, writing = os.pipe()
pool = multiprocessing.get_context("fork").Pool(1)
pool.map(begin, [0])
print("child", pool.apply_async(forks, (0,)).get(timeout=30))
pool.apply_async(tidies, (writing,))
print(os.read(reading, 6).decode())
pool.terminate()
pool.join()
print(os.read(reading, 6).decode())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a worker that forks")
def test_a_signal_to_a_workers_child_is_not_the_workers_and_its_own_handler_runs_to_its_end(run):
    ran = run(_SIGNALLED)
    assert ran.stdout.splitlines() == ["child -15", "ready.", "tidied"], ran.stderr
