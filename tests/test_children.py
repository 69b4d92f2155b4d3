"""A child that is forked from a warm parent behaves as ``python -c`` does."""

import os
import signal
import sys

import pytest
from children import Child, fresh_workers
from joblib import Parallel, delayed


def test_it_has_its_arguments_reads_what_it_is_sent_and_prints():
    child = Child("import sys; print(sys.argv, flush=True); print(sys.stdin.read().upper())", 3, "b c")
    assert child.stdout.readline() == "['-c', '3', 'b c']\n"
    child.stdin.write("abc")
    assert child.communicate() == "ABC\n"
    assert child.returncode == 0


def test_it_is_a_process_of_its_own_that_can_be_killed():
    child = Child("import os, time; print(os.getpid(), flush=True); time.sleep(60)")
    assert int(child.stdout.readline()) == child.pid != os.getpid()
    child.kill()
    assert child.communicate() == ""
    assert child.returncode == -signal.SIGKILL


@pytest.mark.parametrize(("script", "status"), [("import sys; sys.exit(3)", 3), ("import missing_module", 1)])
def test_its_status_is_that_of_the_script(script, status):
    child = Child(script)
    child.communicate()
    assert child.returncode == status


def test_it_imports_what_tests_import_and_starts_warm():
    child = Child(
        "import sys; print('reusable_holdout.ledger' in sys.modules); import contracts.ledger_contract"
    )
    assert child.communicate() == "True\n"
    assert child.returncode == 0


def _imported(name):
    return name in sys.modules


def test_workers_of_joblib_start_warm_unless_they_are_to_be_fresh():
    asked = [delayed(_imported)("reusable_holdout.ledger")] * 2
    assert Parallel(n_jobs=2)(asked) == [True, True]
    with fresh_workers():
        assert Parallel(n_jobs=2)(asked) == [False, False]
    assert Parallel(n_jobs=2)(asked) == [True, True]
