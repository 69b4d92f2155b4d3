"""Rows have one budget: a second one is refused, or marked wherever an answer goes."""

import json
import multiprocessing
import os
import pickle
import re
import shlex
import shutil
import sqlite3
import stat
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from cases import for_each
from long_tests import GUARD
from sklearn.linear_model import LogisticRegression

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import (
    InputError,
    LedgerError,
    PlanError,
    SecondBudgetError,
    SecondBudgetWarning,
)
from reusable_holdout.registry import VARIABLE, Registry, forget, is_gone, registry_of_its_own
from reusable_holdout.witness import FileWitness

ROWS = 600
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 4))
Y = (X[:, 0] + RNG.normal(size=ROWS) > 0).astype(int)
FRESH = np.random.default_rng(1).normal(size=(ROWS, 4))
WISH = {"queries": 20, "charges": 2, "estimate": 0.7}


@pytest.fixture(autouse=True)
def registry(tmp_path):
    with registry_of_its_own():  # which gives the variable its value back, and forgets what is in memory
        os.environ[VARIABLE] = str(tmp_path / "registry")
        yield tmp_path / "registry"


def make(ledger, x=X, y=Y, **changes):
    with ReusableHoldout(x, y, ledger=ledger, **(WISH | changes)) as guard:
        return guard.digest


def made_elsewhere(ledger):
    try:
        make(ledger)
    except SecondBudgetError:
        return "refused"
    return "made"


def test_a_second_budget_is_refused_in_another_file_or_folder_and_nothing_is_made(tmp_path):
    make(tmp_path / "guard.db")
    (tmp_path / "folder").mkdir()
    for ledger in (tmp_path / "other.db", tmp_path / "folder" / "guard.db"):
        with pytest.raises(SecondBudgetError, match=r"have one in .*guard\.db.* nothing was made") as caught:
            make(ledger)
        assert "guard.on" in str(caught.value)
        assert not list(ledger.parent.glob(f"{ledger.name}*")) or ledger.name == "guard.db"
    assert not (tmp_path / "other.db").exists()
    assert not (tmp_path / "folder" / "guard.db").exists()
    assert not (tmp_path / "folder" / "guard.db.key").exists()


def test_the_same_file_is_resumed_and_one_that_was_removed_is_not_refilled(tmp_path):
    ledger = tmp_path / "guard.db"
    assert make(ledger) == make(ledger)
    for file in tmp_path.glob("guard.db*"):
        file.unlink()
    with pytest.raises(SecondBudgetError, match="which holds no guard any more"):
        make(ledger)


def test_another_process_is_refused(tmp_path):
    make(tmp_path / "guard.db")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert pool.submit(made_elsewhere, tmp_path / "other.db").result() == "refused"


@pytest.mark.long("reusable_holdout/registry", *GUARD)
def test_of_processes_that_race_one_gets_a_budget(tmp_path):
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(made_elsewhere, [tmp_path / f"{place}.db" for place in range(4)]))
    assert sorted(found) == ["made", "refused", "refused", "refused"]


def test_of_processes_that_make_the_same_guard_at_once_all_have_it(tmp_path):
    context = multiprocessing.get_context("fork")
    for ledger in [tmp_path / f"{place}.db" for place in range(3)]:
        rows = np.random.default_rng(int(ledger.stem)).normal(size=(ROWS, 4))
        begin = context.Barrier(4)

        def made(ledger=ledger, rows=rows, begin=begin):
            begin.wait()
            with ReusableHoldout(rows, Y, ledger=ledger, **WISH) as guard:
                guard.evaluate_predictions(Y, prior=1.0, name=str(os.getpid()))

        processes = [context.Process(target=made) for _ in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * 4
        assert verify(ledger).queries == 1  # and not one in each of several files of this name


def test_what_was_made_before_its_witness_failed_keeps_its_budget(tmp_path, monkeypatch):
    with ReusableHoldout(X, Y, ledger=tmp_path / "guard.db", witness=tmp_path / "heads", **WISH) as guard:

        def fail(*_, **__):
            raise LedgerError("it cannot be told")

        with monkeypatch.context() as failing:
            failing.setattr(FileWitness, "advance", fail)
            with pytest.raises(LedgerError, match="cannot be told"):
                guard.rotate(FRESH, Y, early=True)
    with ReusableHoldout.open(tmp_path / "guard.db", FRESH, Y) as guard:
        assert guard.epoch == 2
    with pytest.raises(SecondBudgetError):
        make(tmp_path / "other.db", x=FRESH)


def test_a_making_that_failed_does_not_stand_in_the_way_of_the_right_one(tmp_path):
    (tmp_path / "heads").write_text("no witness")
    for wrong in ({"witness": tmp_path / "heads"}, {"key": b"short"}):
        with pytest.raises((LedgerError, InputError)):
            make(tmp_path / "guard.db", **wrong)
        assert Registry.of_user().budgets() == []
    assert make(tmp_path / "right.db", witness=tmp_path / "new heads")


def test_a_ledger_on_a_server_is_refused_and_named_without_its_password(tmp_path, server_url):
    make(tmp_path / "guard.db")
    with pytest.raises(SecondBudgetError, match=r"guard\.db"):
        make(server_url, seed=1)
    make(server_url, x=FRESH, seed=1)
    with pytest.raises(SecondBudgetError, match="postgresql") as caught:
        make(tmp_path / "third.db", x=FRESH)
    assert "password" not in str(caught.value)


OTHERS = {
    "nine in ten rows": (slice(0, ROWS * 9 // 10), lambda x: x),
    "rows in another order": (np.random.default_rng(2).permutation(ROWS), lambda x: x),
    "one more column": (slice(None), lambda x: np.c_[x, np.arange(len(x))]),
    "a data frame": (slice(None), lambda x: pd.DataFrame(x, columns=list("abcd"))),
    "columns of one name": (slice(None), lambda x: pd.DataFrame(x, columns=list("aabc"))),
}


@pytest.mark.parametrize("how", OTHERS)
def test_the_same_rows_under_another_form_are_refused(how, tmp_path):
    make(tmp_path / "guard.db")
    rows, form = OTHERS[how]
    with pytest.raises(SecondBudgetError, match="these rows have one in"):
        make(tmp_path / "other.db", x=form(X[rows]), y=Y[rows])


def test_labels_alone_are_known_as_a_whole_and_judged_rows_by_their_names(tmp_path):
    make(tmp_path / "labels.db", x=None)
    with pytest.raises(SecondBudgetError):
        make(tmp_path / "again.db", x=None)
    make(tmp_path / "others.db", x=None, y=1 - Y)
    ids = [f"task {place}" for place in range(ROWS)]
    judged = {"x": None, "metric": "score", "spread": 0.3}
    make(tmp_path / "judged.db", y=ids, **judged)
    with pytest.raises(SecondBudgetError):
        make(tmp_path / "more.db", y=ids[: ROWS // 2], **judged)


def test_sparse_rows_are_known(tmp_path):
    sparse = scipy.sparse.random(ROWS, 30, density=0.2, format="csr", rng=np.random.default_rng(3))
    make(tmp_path / "guard.db", x=sparse)
    with pytest.raises(SecondBudgetError):
        make(tmp_path / "other.db", x=sparse[::-1])


def test_fresh_rows_have_a_budget_of_their_own(tmp_path):
    make(tmp_path / "guard.db")
    make(tmp_path / "other.db", x=FRESH)
    assert len(Registry(tmp_path / "registry").budgets()) == 2


def test_who_insists_is_told_so_by_every_answer_the_ledger_and_its_verification(tmp_path):
    make(tmp_path / "guard.db")
    ledger = tmp_path / "other.db"
    with ReusableHoldout(X, Y, ledger=ledger, another_budget=True, reveals=1, **WISH) as guard:
        answer = guard.evaluate_predictions(Y, prior=1.0)
        assert answer.another_budget
        assert "of rows with another budget" in str(answer)
        batch = guard.evaluate_many([Y, X[:, 1] > 0, Y], [1.0, 0.5, 1.0])
        assert all(one.another_budget for one in batch)
        assert all(one.another_budget for one in guard.evaluate_many([Y], [1.0]))
        assert guard.reveal_predictions(Y, prior=1.0).another_budget
        assert (
            guard.on("brier", tolerance=0.4, vacuous=True).evaluate_predictions(Y, prior=0.0).another_budget
        )
        copy = pickle.loads(pickle.dumps(guard))
        assert copy.evaluate_predictions(Y, prior=1.0).another_budget
    with ReusableHoldout.open(ledger, X, Y) as again:
        assert again.evaluate_predictions(Y, prior=1.0).another_budget
        assert again.final_predictions(Y).another_budget
    found = verify(ledger)
    assert found.sound
    assert found.another_budget
    assert not verify(tmp_path / "guard.db").another_budget


# ---- ledgers that are gone, and forgetting them


def pasted(error):
    """The command that an error names, as a shell would take it."""
    words = shlex.split(str(error.value).partition("say why: ")[2])
    assert words[0] == f"{VARIABLE}={os.environ[VARIABLE]}"
    assert words[1] == "reusable-holdout"
    return words[2:]


def test_a_ledger_that_is_gone_is_forgotten_by_the_command_that_the_refusal_names(tmp_path, capsys):
    """A rehearsal in a folder that its owner deleted refused the rows for ever, without a word on a way out."""
    folders = [tmp_path / "a rehearsal's", tmp_path / "temporary"]
    for folder in folders:
        folder.mkdir()
        make(folder / "guard.db", another_budget=True)
        shutil.rmtree(folder)
    with pytest.raises(SecondBudgetError, match="which is not there any more") as caught:
        make(tmp_path / "new.db")
    command = pasted(caught)
    assert command == [
        "registry",
        "forget",
        *(f"{folder / 'guard.db'}" for folder in folders),
        "--because",
        "...",
    ]
    assert main(command) == 1  # as it is pasted, it says no reason
    assert "for a reason, in words" in capsys.readouterr().err
    command[-1] = "rehearsals; nothing of them was used"
    assert main(command) == 0
    with pytest.warns(
        SecondBudgetWarning, match="forgotten .*: rehearsals; nothing of them was used"
    ) as warned:
        make(tmp_path / "new.db")
    told = [one for one in warned if one.category is SecondBudgetWarning]
    assert [one.filename for one in told] == [__file__] * 2


def test_a_ledger_whose_file_was_removed_is_forgotten_to_begin_anew_in_its_place(tmp_path):
    ledger = tmp_path / "guard.db"
    make(ledger)
    for file in tmp_path.glob("guard.db*"):
        file.unlink()
    with pytest.raises(SecondBudgetError) as caught:
        make(ledger)
    assert pasted(caught)[2:-2] == [str(ledger)]


def test_a_ledger_that_is_there_is_to_be_resumed_and_no_command_forgets_it(tmp_path):
    make(tmp_path / "guard.db")
    make(tmp_path / "second.db", another_budget=True)
    (tmp_path / "second.db").unlink()
    with pytest.raises(SecondBudgetError, match=r"one in .*guard\.db") as caught:
        make(tmp_path / "other.db")
    assert "registry forget" not in str(caught.value)


def test_only_a_file_that_is_missing_is_gone(tmp_path):
    (tmp_path / "guard.db").touch()
    assert is_gone(str(tmp_path / "other.db"))
    assert is_gone(str(tmp_path / "guard.db" / "no folder"))
    for there in (str(tmp_path / "guard.db"), "postgresql://host/guards", "memory"):
        assert not is_gone(there)


@pytest.mark.parametrize("words", [[], ["--because", ""], ["--because", " ... "], ["--because", "a\x1b[2J"]])
def test_nothing_is_forgotten_without_a_reason(tmp_path, capsys, words):
    make(tmp_path / "guard.db")
    assert main(["registry", "forget", str(tmp_path / "guard.db"), *words]) == 1
    assert "nothing was forgotten" in capsys.readouterr().err
    assert not Registry.of_user().budgets()[0].forgotten


def test_what_was_forgotten_stays_in_the_registry_with_the_day_and_the_reason(tmp_path, capsys):
    make(tmp_path / "guard.db")
    assert main(["registry", "forget", str(tmp_path / "guard.db"), "--because", "the disk was lost"]) == 0
    with (
        pytest.warns(SecondBudgetWarning, match="the disk was lost"),
        ReusableHoldout(X, Y, ledger=tmp_path / "other.db", **WISH) as guard,
    ):
        assert guard.evaluate_predictions(Y, prior=1.0).another_budget
    with ReusableHoldout.open(tmp_path / "other.db", X, Y) as guard:
        assert guard.evaluate_predictions(1 - Y, prior=0.0).another_budget
    (tmp_path / "other.db").unlink()
    assert main(["registry", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert re.search(r"guard\.db  \(forgotten 20\S+: the disk was lost\)$", first)
    assert second.endswith("other.db  (no longer there)")
    assert main(["registry", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["because"] for one in listed] == ["the disk was lost", ""]
    assert main(["registry", "forget", "nowhere.db", "--because", "a mistake"]) == 1
    assert "must be one that rows have a budget in" in capsys.readouterr().err
    assert main(["registry", "forget", str(tmp_path / "other.db"), "nowhere.db", "--because", "why"]) == 1
    assert [one.forgotten for one in Registry.of_user().budgets()] == [True, False]


def test_what_was_forgotten_before_reasons_were_kept_is_still_told(tmp_path, registry, capsys):
    make(tmp_path / "guard.db")
    with closing(sqlite3.connect(registry / "registry.db")) as old:
        old.execute("UPDATE budgets SET forgotten = 1")
        old.execute("DROP TABLE forgotten")
        old.commit()
    with pytest.warns(SecondBudgetWarning, match="forgotten: no reason was kept"):
        make(tmp_path / "other.db")
    assert main(["registry", "list"]) == 0
    assert "(forgotten: no reason was kept)" in capsys.readouterr().out


def test_a_making_that_fails_takes_no_earlier_budget_of_its_place_from_the_registry(tmp_path):
    """The same rows in a ledger at the same place: what is taken back is the claim that came to nothing, alone."""
    ledger = tmp_path / "guard.db"
    make(ledger)
    for file in tmp_path.glob("guard.db*"):
        file.unlink()
    with pytest.raises(InputError, match="key"):
        make(ledger, key=b"short", another_budget=True)
    assert [one.forgotten for one in Registry.of_user().budgets()] == [False]
    forget(Registry.of_user(), str(ledger), "the file was lost")
    with pytest.warns(SecondBudgetWarning), pytest.raises(InputError, match="key"):
        make(ledger, key=b"short")
    assert [one.because for one in Registry.of_user().budgets()] == ["the file was lost"]


def test_what_was_not_made_takes_no_budget(tmp_path):
    with pytest.raises(PlanError):
        make(tmp_path / "guard.db", tolerance=1e-4)
    with pytest.raises(InputError):
        make(tmp_path / "guard.db", seed=1, key=bytes(32))
    make(tmp_path / "other.db")


def test_guards_in_memory_are_not_registered(tmp_path, registry):
    make(None)
    make(None)
    assert not registry.exists()


def test_the_next_holdout_must_be_of_rows_that_have_no_budget(tmp_path):
    with ReusableHoldout(X, Y, ledger=tmp_path / "guard.db", **WISH) as guard:
        with pytest.raises(SecondBudgetError, match="in an epoch before"):
            guard.rotate(np.r_[X[1:], FRESH[:1]], np.r_[Y[1:], Y[:1]], early=True, overlap="allow")
        assert guard.evaluate_predictions(Y, prior=1.0).query == 1
        turned = guard.rotate(FRESH, Y, early=True)
        assert not turned.guard.evaluate_predictions(Y, prior=1.0).another_budget
    with pytest.raises(SecondBudgetError):
        make(tmp_path / "other.db", x=FRESH)


def test_only_its_owner_can_read_it_and_it_holds_no_value_of_a_row(tmp_path, registry):
    make(tmp_path / "guard.db")
    for file in registry.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content = (registry / "registry.db").read_bytes()
    assert not any(X[row].tobytes() in content or X[row, :1].tobytes() in content for row in range(ROWS))


def test_a_folder_that_cannot_be_written_is_an_error_if_it_was_named_and_a_warning_if_not(
    tmp_path, monkeypatch
):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(VARIABLE, str(blocked))
    with pytest.raises(LedgerError, match="registry of rows must be writable"):
        make(tmp_path / "guard.db")
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    with pytest.warns(RuntimeWarning, match="is not known"):
        make(tmp_path / "guard.db")


def test_it_can_be_turned_off(tmp_path, monkeypatch, registry):
    monkeypatch.setenv(VARIABLE, "off")
    make(tmp_path / "guard.db")
    make(tmp_path / "other.db")
    assert not registry.exists()
    assert main(["registry", "list"]) == 1


def test_a_fitted_model_is_asked_as_before(tmp_path):
    with ReusableHoldout(X, Y, ledger=tmp_path / "guard.db", **WISH) as guard:
        model = LogisticRegression().fit(FRESH, (FRESH[:, 0] > 0).astype(int))
        assert guard.evaluate(model, prior=0.7).query == 1
    assert os.environ[VARIABLE]


@for_each("name", ["new\nline.db", "red \x1b[31m.db", "u\u202egnp.db"])
def test_the_command_forgets_a_ledger_whose_name_cannot_be_printed(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / f"registry of {len(name)}"))
    made = tmp_path / name
    make(made, witness=False)
    made.unlink()
    with pytest.raises(SecondBudgetError) as refused:
        make(tmp_path / "other.db", witness=False)
    command = str(refused.value).split("reusable-holdout ", 1)[1]
    assert main(shlex.split(command.replace('"..."', '"a rehearsal"'))) == 0
    assert capsys.readouterr().out.removesuffix("\n").isprintable()
    with pytest.warns(SecondBudgetWarning, match="a rehearsal"):
        make(tmp_path / "other.db", witness=False)
    (tmp_path / "other.db").unlink()
