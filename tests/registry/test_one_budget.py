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
from cases import for_each, refuses
from long_tests import GUARD
from registry.guards import FRESH, ROWS, X, Y, made

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError, LedgerError, PlanError, SecondBudgetError, SecondBudgetWarning
from reusable_holdout.registry import VARIABLE, Registry, forget, is_gone, registry_of_its_own
from reusable_holdout.witness import FileWitness


@pytest.fixture(autouse=True)
def registry(tmp_path):
    with registry_of_its_own():  # which gives the variable its value back, and forgets what is in memory
        os.environ[VARIABLE] = str(tmp_path / "registry")
        yield tmp_path / "registry"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "guard.db"


@pytest.fixture
def other(tmp_path):
    return tmp_path / "other.db"


def make(ledger, x=X, y=Y, **changes):
    with made(ledger, x, y, **changes) as guard:
        return guard.digest


def remove(ledger):
    for file in ledger.parent.glob(f"{ledger.name}*"):
        file.unlink()


def budgets():
    return Registry.of_user().budgets()


def made_elsewhere(ledger):
    try:
        make(ledger)
    except SecondBudgetError:
        return "refused"
    return "made"


def test_a_second_budget_is_refused_in_another_file_or_folder_and_nothing_is_made(path, tmp_path):
    make(path)
    (tmp_path / "folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    for ledger in (tmp_path / "other.db", tmp_path / "folder" / "guard.db"):
        refuses(SecondBudgetError, r"have one in .*guard\.db.* nothing was made.*guard\.on", make, ledger)
        assert sorted(tmp_path.rglob("*")) == before


def test_the_same_file_is_resumed_and_one_that_was_removed_is_not_refilled(path):
    assert make(path) == make(path)
    remove(path)
    refuses(SecondBudgetError, "which holds no guard any more", make, path)


@pytest.mark.long("reusable_holdout/registry", *GUARD)
def test_of_processes_that_race_one_gets_a_budget(tmp_path):
    ledgers = [tmp_path / f"{place}.db" for place in range(5)]
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = list(pool.map(made_elsewhere, ledgers[:4]))
    assert sorted([*found, made_elsewhere(ledgers[4])]) == ["made", *["refused"] * 4]


def test_of_processes_that_make_the_same_guard_at_once_all_have_it(tmp_path):
    context = multiprocessing.get_context("fork")
    for ledger in [tmp_path / f"{place}.db" for place in range(3)]:
        rows = np.random.default_rng(int(ledger.stem)).normal(size=(ROWS, 4))
        begin = context.Barrier(4)

        def ask(ledger=ledger, rows=rows, begin=begin):
            begin.wait()
            with made(ledger, rows) as guard:
                guard.evaluate(Y, prior=1.0, name=str(os.getpid()))

        processes = [context.Process(target=ask) for _ in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        assert [process.exitcode for process in processes] == [0] * 4
        assert verify(ledger).queries == 1  # and not one in each of several files of this name


def test_what_was_made_before_its_witness_failed_keeps_its_budget(path, other, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise LedgerError("it cannot be told")

    with made(path, witness=tmp_path / "heads") as guard, monkeypatch.context() as failing:
        failing.setattr(FileWitness, "advance", fail)
        refuses(LedgerError, "cannot be told", guard.rotate, FRESH, Y, early=True)
    with ReusableHoldout.open(path, FRESH, Y) as guard:
        assert guard.epoch == 2
    refuses(SecondBudgetError, "", make, other, x=FRESH)


def test_a_making_that_failed_takes_no_budget_and_takes_none_away(path, other, tmp_path):
    (tmp_path / "heads").write_text("no witness")
    for wrong in (
        {"witness": tmp_path / "heads"},
        {"key": b"short"},
        {"tolerance": 1e-4},
        {"seed": 1, "key": bytes(32)},
    ):
        refuses((LedgerError, InputError, PlanError), "", make, path, **wrong)
        assert budgets() == []
    make(other)
    remove(other)
    refuses(InputError, "key", make, other, key=b"short", another_budget=True)
    assert [one.forgotten for one in budgets()] == [False]
    forget(Registry.of_user(), str(other), "the file was lost")
    with pytest.warns(SecondBudgetWarning), pytest.raises(InputError, match="key"):
        make(other, key=b"short")
    assert [one.because for one in budgets()] == ["the file was lost"]


def test_a_ledger_on_a_server_is_refused_and_named_without_its_password(path, other, server_url):
    make(path)
    refuses(SecondBudgetError, r"guard\.db", make, server_url, seed=1)
    make(server_url, x=FRESH, seed=1)
    caught = refuses(SecondBudgetError, "postgresql", make, other, x=FRESH)
    assert "password" not in str(caught)


SPARSE = scipy.sparse.random(ROWS, 30, density=0.2, format="csr", rng=np.random.default_rng(3))
NAMES = [f"task {place}" for place in range(ROWS)]
JUDGED = {"x": None, "metric": "score", "spread": 0.3}
SAME = {
    "nine in ten rows": ({}, {"x": X[: ROWS * 9 // 10], "y": Y[: ROWS * 9 // 10]}),
    "another order": ({}, {"x": X[::-1], "y": Y[::-1]}),
    "one more column": ({}, {"x": np.c_[X, np.arange(ROWS)]}),
    "a data frame": ({}, {"x": pd.DataFrame(X, columns=list("abcd"))}),
    "columns of one name": ({}, {"x": pd.DataFrame(X, columns=list("aabc"))}),
    "sparse rows": ({"x": SPARSE}, {"x": SPARSE[::-1]}),
    "labels alone": ({"x": None}, {"x": None}),
    "names of judged rows": ({"y": NAMES, **JUDGED}, {"y": NAMES[: ROWS // 2], **JUDGED}),
}


@for_each("how", SAME)
def test_the_same_rows_under_another_form_are_refused(tmp_path_factory, how):
    folder, (first, second) = tmp_path_factory.mktemp("same"), SAME[how]
    with registry_of_its_own():
        make(folder / "guard.db", **first)
        refuses(SecondBudgetError, "these rows have one in", make, folder / "other.db", **second)


def test_other_rows_have_a_budget_of_their_own_and_guards_in_memory_are_not_registered(
    path, other, tmp_path, registry
):
    make(None)
    make(None)
    assert not registry.exists()
    with registry_of_its_own():
        make(path)
        make(other, x=FRESH)
        make(tmp_path / "labels.db", x=None)
        make(tmp_path / "other labels.db", x=None, y=1 - Y)
        assert len(budgets()) == 4


def test_who_insists_is_told_so_by_every_answer_the_ledger_and_its_verification(path, other):
    make(path)
    with made(other, another_budget=True, reveals=1) as guard:
        answer = guard.evaluate(Y, prior=1.0)
        assert "of rows with another budget" in str(answer)
        told = [answer, *guard.evaluate([Y, X[:, 1] > 0, Y], prior=[1.0, 0.5, 1.0])]
        told += [*guard.evaluate([Y], prior=[1.0]), guard.reveal(Y, prior=1.0)]
        told += [guard.on("brier", tolerance=0.4, allow={"vacuous"}).evaluate(Y, prior=0.0)]
        told += [pickle.loads(pickle.dumps(guard)).evaluate(Y, prior=1.0)]
    with ReusableHoldout.open(other, X, Y) as again:
        told += [again.evaluate(Y, prior=1.0), again.final(Y)]
    assert all(one.another_budget for one in told)
    found = verify(other)
    assert found.sound
    assert found.another_budget
    assert not verify(path).another_budget


# ---- ledgers that are gone, and forgetting them


def pasted(error):
    """The command that an error names, as a shell would take it."""
    words = shlex.split(str(error.value).partition("state the reason: ")[2])
    assert words[:2] == [f"{VARIABLE}={os.environ[VARIABLE]}", "reusable-holdout"]
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
    gone = [f"{folder / 'guard.db'}" for folder in folders]
    assert command == ["registry", "forget", *gone, "--because", "..."]
    assert main(command) == 1  # as it is pasted, it says no reason
    assert "needs a reason in words" in capsys.readouterr().err
    assert main([*command[:-1], "rehearsals; nothing of them was used"]) == 0
    with pytest.warns(
        SecondBudgetWarning, match="forgotten .*: rehearsals; nothing of them was used"
    ) as warned:
        make(tmp_path / "new.db")
    told = [one for one in warned if one.category is SecondBudgetWarning]
    assert [one.filename.endswith("made_guards.py") for one in told] == [True] * 2


def test_a_removed_file_is_forgotten_to_begin_anew_in_its_place_and_one_that_is_there_is_resumed(
    path, other, tmp_path
):
    make(path)
    remove(path)
    with pytest.raises(SecondBudgetError) as caught:
        make(path)
    assert pasted(caught)[2:-2] == [str(path)]
    make(other, another_budget=True)
    with pytest.raises(SecondBudgetError, match=r"one in .*other\.db") as caught:
        make(tmp_path / "third.db")
    assert "registry forget" not in str(caught.value)


def test_only_a_file_that_is_missing_is_gone(path, other):
    path.touch()
    assert is_gone(str(other))
    assert is_gone(str(path / "no folder"))
    assert not any(map(is_gone, (str(path), "postgresql://host/guards", "memory")))


@for_each("words", [[], ["--because", ""], ["--because", " ... "], ["--because", "a\x1b[2J"]])
def test_nothing_is_forgotten_without_a_reason(path, capsys, words):
    make(path)
    assert main(["registry", "forget", str(path), *words]) == 1
    assert "nothing was forgotten" in capsys.readouterr().err
    assert not budgets()[0].forgotten


def test_what_was_forgotten_stays_in_the_registry_with_the_day_and_the_reason(path, other, capsys):
    make(path)
    assert main(["registry", "forget", str(path), "--because", "the disk was lost"]) == 0
    with pytest.warns(SecondBudgetWarning, match="the disk was lost"), made(other) as guard:
        assert guard.evaluate(Y, prior=1.0).another_budget
    with ReusableHoldout.open(other, X, Y) as guard:
        assert guard.evaluate(1 - Y, prior=0.0).another_budget
    other.unlink()
    assert main(["registry", "list"]) == 0
    first, second = capsys.readouterr().out.splitlines()[-2:]
    assert re.search(r"guard\.db  \(forgotten 20\S+: the disk was lost\)$", first)
    assert second.endswith("other.db  (no longer there)")
    assert main(["registry", "list", "--json"]) == 0
    assert [one["because"] for one in json.loads(capsys.readouterr().out)] == ["the disk was lost", ""]
    for ledgers in (["nowhere.db"], [str(other), "nowhere.db"]):
        assert main(["registry", "forget", *ledgers, "--because", "a mistake"]) == 1
        assert "must be one that rows have a budget in" in capsys.readouterr().err
    assert [one.forgotten for one in budgets()] == [True, False]


def test_what_was_forgotten_before_reasons_were_kept_is_still_told(path, other, registry, capsys):
    make(path)
    with closing(sqlite3.connect(registry / "registry.db")) as old:
        old.execute("UPDATE budgets SET forgotten = 1")
        old.execute("DROP TABLE forgotten")
        old.commit()
    with pytest.warns(SecondBudgetWarning, match="forgotten: no reason was kept"):
        make(other)
    assert main(["registry", "list"]) == 0
    assert "(forgotten: no reason was kept)" in capsys.readouterr().out


@for_each("name", ["new\nline.db", "red \x1b[31m.db", "u\u202egnp.db"])
def test_the_command_forgets_a_ledger_whose_name_cannot_be_printed(name, tmp_path, capsys):
    with registry_of_its_own():
        make(tmp_path / name, witness=False)
        remove(tmp_path / name)
        with pytest.raises(SecondBudgetError) as refused:
            make(tmp_path / "other.db", witness=False)
        assert main([*pasted(refused)[:-1], "a rehearsal"]) == 0
        assert capsys.readouterr().out.removesuffix("\n").isprintable()
        with pytest.warns(SecondBudgetWarning, match="a rehearsal"):
            make(tmp_path / "other.db", witness=False)
        remove(tmp_path / "other.db")


# ---- the next holdout, and the registry itself


def test_the_next_holdout_must_be_of_rows_that_have_no_budget(path, other):
    with made(path) as guard:
        with pytest.raises(SecondBudgetError, match="in an earlier epoch"):
            guard.rotate(np.r_[X[1:], FRESH[:1]], np.r_[Y[1:], Y[:1]], early=True, allow={"overlap"})
        assert guard.evaluate(Y, prior=1.0).query == 1
        turned = guard.rotate(FRESH, Y, early=True)
        assert not turned.guard.evaluate(Y, prior=1.0).another_budget
    refuses(SecondBudgetError, "", make, other, x=FRESH)


def test_only_its_owner_can_read_it_and_it_holds_no_value_of_a_row(path, registry):
    make(path)
    assert {stat.S_IMODE(file.stat().st_mode) for file in registry.iterdir()} == {0o600}
    content = (registry / "registry.db").read_bytes()
    assert not any(X[row].tobytes() in content or X[row, :1].tobytes() in content for row in range(ROWS))


def test_a_folder_that_cannot_be_written_is_an_error_if_it_was_named_and_a_warning_if_not(
    path, tmp_path, monkeypatch
):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(VARIABLE, str(blocked))
    refuses(LedgerError, "registry of rows must be writable", make, path)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_STATE_HOME", str(blocked))
    with pytest.warns(RuntimeWarning, match="is not known"):
        make(path)


def test_it_can_be_turned_off(path, other, monkeypatch, registry):
    monkeypatch.setenv(VARIABLE, "off")
    make(path)
    make(other)
    assert not registry.exists()
    assert main(["registry", "list"]) == 1
