"""A sound ledger passes; whatever is changed in it is found, also by a forger who seals it again."""

import contextlib
import functools
import itertools
import json
import shutil
import sqlite3

import numpy as np
import pytest
from cases import for_each, refuses
from guard.counting import Crashing
from guard.forging import all_rows, every_way, recompute, seal_again, sql
from made_guards import made_guard

from reusable_holdout import verify
from reusable_holdout.errors import LedgerError, ModelError, TamperedLedgerError
from reusable_holdout.guard.releases import released
from reusable_holdout.ledger import Row
from reusable_holdout.noise import Calibration
from reusable_holdout.ways.check import Batch, Check

COLUMNS = [*Row._fields, "seal"]


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """Where the ledger lies that all tests copy."""
    return tmp_path_factory.mktemp("original") / "guard.db"


@pytest.fixture
def copied(tmp_path, original, make_guard, scoring):
    """Makes ledgers of eleven answers in five commits: agreed, charged, a batch with charges, a failure, agreed."""
    if not original.exists():
        with make_guard(original, X=np.zeros((2_000, 1)), charges=8, noise=0.001, seed=5) as guard:
            guard.evaluate(scoring(0.7), prior=0.7, name="first")
            guard.evaluate(scoring(0.9), prior=0.75, name="second")
            asked, priors = [scoring(0.7, k) for k in range(1, 8)], [0.7, 0.85, 0.7, 0.68, 0.55, 0.7, 0.7]
            guard.evaluate(list(asked), prior=priors, name=[str(k) for k in range(7)])
            refuses(ModelError, "", guard.evaluate, Crashing(), prior=0.5)
            guard.evaluate(scoring(0.72), prior=0.7, name="last")
    numbers = itertools.count()
    return lambda: shutil.copy(original, tmp_path / f"copy-{next(numbers)}.db")


@pytest.fixture
def ledger(copied):
    """One of them."""
    return copied()


def changed(value):
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, int):
        return value + 1
    return float(np.nextafter(value, 2.0)) if isinstance(value, float) else value + "x"


def tampered(ledger):
    """Whether verification finds something, in whichever way it says so."""
    try:
        found = verify(ledger)
    except LedgerError:
        return True
    assert found.sound == (not found.problems)
    if not found.sound:
        caught = refuses(TamperedLedgerError, "", found.check)
        assert caught.problems == found.problems
    return not found.sound


# ---- what is sound


def test_a_sound_ledger_passes(ledger):
    found = verify(ledger)
    assert (found.problems, found.sound, found.queries, found.charges) == ([], True, 11, 4)
    assert len(bytes.fromhex(found.head)) == 32
    found.check()
    assert verify(str(ledger)) == found
    assert verify(f"sqlite:///{ledger}", expected_head=found.head) == found


def test_verifying_changes_nothing_and_needs_neither_key_nor_holdout(ledger, tmp_path):
    alone = tmp_path / "alone"
    alone.mkdir()
    shutil.copy(ledger, alone / "copy.db")
    before = (alone / "copy.db").read_bytes()
    verify(alone / "copy.db").check()
    assert (alone / "copy.db").read_bytes() == before
    assert [path.name for path in alone.iterdir()] == ["copy.db"]


def test_an_empty_ledger_is_sound(make_guard, tmp_path):
    make_guard(tmp_path / "guard.db").close()
    found = verify(tmp_path / "guard.db")
    assert (found.problems, found.queries, found.charges) == ([], 0, 0)


# ---- what was changed


@for_each("query", [1, 2, 3, 4, 9, 10, 11])
@for_each("column", COLUMNS)
def test_any_change_of_any_column_is_found(copied, column, query):
    ledger = copied()
    connection = sqlite3.connect(ledger)
    value = connection.execute(f"SELECT {column} FROM answers WHERE query = ?", [query]).fetchone()[0]
    connection.close()
    new = bytes(32) if value is None else query + 100 if column == "query" else changed(value)
    sql(ledger, (f"UPDATE answers SET {column} = ? WHERE query = ?", new, query))
    assert tampered(ledger)


@for_each("column", ["batch", "value", "charged", "nats", "charges", "digest"])
@for_each("value", ["'abc'", "x'00'", "1e999", "1.5", "-1"])
def test_values_that_cannot_be_are_found_and_do_not_confound(copied, column, value):
    ledger = copied()
    sql(ledger, (f"UPDATE answers SET {column} = {value} WHERE query = 5",))  # SQLite takes any type
    assert tampered(ledger)


def added(query, seal):
    """Statement that adds a row like the last one."""
    return (
        f"INSERT INTO answers SELECT 1, {query}, {query}, zeroblob(32), prior, value, charged, threshold, tolerance, "
        "low, high, nats, charges, spent_nats, asked, asked_at, view, kind, told, name, series, "
        f"{seal} FROM answers WHERE query = 11"
    )


TAMPERINGS = {
    "the first row is deleted": ["DELETE FROM answers WHERE query = 1"],
    "a row is deleted": ["DELETE FROM answers WHERE query = 5"],
    "the last row of a batch is deleted": ["DELETE FROM answers WHERE query = 9"],
    "a whole batch is deleted": ["DELETE FROM answers WHERE query BETWEEN 3 AND 9"],
    "a whole batch is deleted and the rest renumbered": [
        "DELETE FROM answers WHERE query BETWEEN 3 AND 9",
        "UPDATE answers SET query = query - 7, batch = batch - 7 WHERE query > 9",
    ],
    "a row is deleted and the rest renumbered": [
        "DELETE FROM answers WHERE query = 1",
        "UPDATE answers SET query = query - 1, batch = batch - 1",
    ],
    "two rows of a batch are swapped": [
        "UPDATE answers SET query = 100 WHERE query = 3",
        "UPDATE answers SET query = 3 WHERE query = 5",
        "UPDATE answers SET query = 5 WHERE query = 100",
    ],
    "two commits are swapped": [
        "UPDATE answers SET query = 100, batch = 100 WHERE query = 1",
        "UPDATE answers SET query = 1, batch = 1 WHERE query = 2",
        "UPDATE answers SET query = 2, batch = 2 WHERE query = 100",
    ],
    "the names of two rows are swapped": [
        "UPDATE answers SET name = CASE query WHEN 4 THEN '2' ELSE '1' END WHERE query IN (4, 5)"
    ],
    "a letter moves from one name to the next": [
        "UPDATE answers SET name = '12' WHERE query = 4",
        "UPDATE answers SET name = '' WHERE query = 5",
    ],
    "the last seal is gone": ["UPDATE answers SET seal = NULL WHERE query = 11"],
    "all seals are gone": ["UPDATE answers SET seal = NULL"],
    "a batch is split": ["UPDATE answers SET seal = zeroblob(32) WHERE query = 6"],
    "two commits are joined": [
        "UPDATE answers SET seal = NULL WHERE query = 1",
        "UPDATE answers SET batch = 1 WHERE query = 2",
    ],
    "a row is added at the end": [added(12, "seal")],
    "a row is added without a seal": [added(12, "NULL")],
    "a row is added before the first": [added(0, "NULL")],
    "a sealed row is added before the first": [added(-3, "zeroblob(32)")],
    "a row of invalid text": ["UPDATE answers SET name = CAST(x'ff' AS TEXT) WHERE query = 4"],
    "the configuration is gone": ["DELETE FROM configuration"],
    "the configuration is no JSON": ["UPDATE configuration SET text = 'nonsense'"],
    "the configuration is a list": ["UPDATE configuration SET text = '[]'"],
    "the configuration is bytes": ["UPDATE configuration SET text = x'ff'"],
    "the configuration is a space longer": ["UPDATE configuration SET text = text || ' '"],
    "the schema is another": ["UPDATE configuration SET schema_version = 6"],
    "the table is gone": ["DROP TABLE answers"],
    "the digest is cut": ["UPDATE answers SET digest = x'00' WHERE query = 2"],
}


@for_each("name", TAMPERINGS)
def test_tampering_is_found(copied, name):
    ledger = copied()
    sql(ledger, *[(statement,) for statement in TAMPERINGS[name]])
    assert tampered(ledger)


def test_a_changed_empty_ledger_is_found_by_its_expected_head(make_guard, tmp_path):
    ledger = tmp_path / "guard.db"
    make_guard(ledger).close()
    head = verify(ledger).head
    text = all_rows(ledger)[0]
    sql(ledger, ("UPDATE configuration SET text = ?", text.replace('"queries":40', '"queries":41')))
    assert not verify(ledger, expected_head=head).sound


# ---- answers after a halt


@pytest.fixture
def endless(make_guard, tmp_path):
    """Guards that do not halt: each row they write is certified and sealed as it should be."""

    def make(**changes):
        guard = make_guard(tmp_path / "guard.db", **changes)
        for kind in every_way(guard):
            kind.halt_reason = lambda _: None
            kind.check_affordable = lambda *_: None
            kind._calibration = Calibration("noiseless", 100)
            if isinstance(kind, Check):
                kind.decide = functools.partial(_one_by_one, kind)
                kind.decide_one = functools.partial(_alone, kind)
        return guard

    return make


def _one_by_one(way, asked, state):
    """Decide a batch up to its end, whatever was charged on the way."""
    units, outcomes = [], []
    for place in range(len(asked.digests)):
        own = type(way).decide(way, asked.at([place]), state._replace(charges=0))
        units.append(own.units[0])
        outcomes.append(own.outcomes[0])
        if own.outcomes[0] is not None:
            nats = state.nats + own.outcomes[0].nats
            state = state._replace(charges=state.charges + 1, nats=nats)
    return Batch(np.array(units), outcomes)


def _alone(way, asked, state):
    return type(way).decide_one(way, asked, state._replace(charges=0))


AFTER_THE_LAST_CHARGE = {
    "an agreed answer": lambda guard, scoring: guard.evaluate(scoring(0.7, 9), prior=0.7),
    "a charged answer": lambda guard, scoring: guard.evaluate(scoring(0.7, 9), prior=0.85),
    "a failure": lambda guard, _: guard.evaluate(Crashing(), prior=0.5),
    "a comparison": lambda guard, scoring: guard.compare(scoring(0.8), scoring(0.7), prior=0.1),
    "a batch": lambda guard, scoring: guard.evaluate([scoring(0.7, k) for k in (8, 9)], prior=[0.7, 0.85]),
    "a reveal": lambda guard, scoring: guard.reveal(scoring(0.7, 9), prior=0.7),
    "a choice": lambda guard, scoring: guard.choose([scoring(0.7, 9), scoring(0.3, 9)], [0.7, 0.3]),
}


@pytest.mark.parametrize("name", AFTER_THE_LAST_CHARGE)
def test_an_answer_after_the_last_charge_is_found(endless, tmp_path, scoring, name):
    """The intervals are bought with a halt: a guard that goes on promises what its plan cannot keep.

    Nothing else is wrong with these rows, so nothing else would find them.
    """
    guard = endless(X=np.zeros((2_000, 1)), reveals=4)
    for k in range(3):
        guard.evaluate(scoring(0.7, k), prior=0.85)
    assert verify(tmp_path / "guard.db").problems == []  # the answer that spends the last charge is allowed
    with contextlib.suppress(ModelError):
        AFTER_THE_LAST_CHARGE[name](guard, scoring)
    found = verify(tmp_path / "guard.db")
    after = range(4, found.queries + 1)
    assert found.problems == [f"query {query} was answered after the guard had to halt" for query in after]
    assert found.queries > 3
    refuses(TamperedLedgerError, "", found.check)


def test_answers_of_one_batch_after_the_last_charge_in_it_are_found(endless, tmp_path, scoring):
    asked = [scoring(0.7, k) for k in range(5)]
    endless().evaluate(list(asked), prior=[0.85, 0.85, 0.85, 0.7, 0.7])
    assert verify(tmp_path / "guard.db").problems == [
        f"query {query} was answered after the guard had to halt" for query in (4, 5)
    ]


def test_a_reveal_that_had_to_be_refused_is_found(endless, tmp_path, scoring):
    """With all charges still to come, its dearest cell would break the promise of the plan."""
    guard = endless(reveals=2)
    for k in range(2):
        guard.reveal(scoring(0.7, k), prior=0.7)
    assert verify(tmp_path / "guard.db").problems == []
    told = 2
    while guard.price("reveal").allowed:  # those that cost less than the dearest left room for more
        guard.reveal(scoring(0.7, told), prior=0.7)
        told += 1
    assert verify(tmp_path / "guard.db").problems == []
    guard.reveal(scoring(0.7, told), prior=0.7)
    assert verify(tmp_path / "guard.db").problems == [
        f"query {told + 1} had to be refused, because it could have broken a promise of the plan"
    ]


def test_an_answer_after_the_halt_of_gates_is_found(endless, tmp_path, scoring):
    guard = endless(policy="gate", charges=2)
    for k, score in enumerate((0.5, 0.6, 0.7, 0.9)):
        guard.gate(scoring(score), 0.5 - 0.15 * k)
    assert "answered after the guard had to halt" in "".join(verify(tmp_path / "guard.db").problems)


# ---- the end of the ledger


@for_each("last", [0, 1, 2, 9, 10])
def test_rows_cut_off_the_end_are_found_with_the_expected_head(copied, last):
    ledger = copied()
    head = verify(ledger).head
    sql(ledger, ("DELETE FROM answers WHERE query > ?", last))
    assert verify(ledger).sound  # whole commits are gone without a trace
    found = verify(ledger, expected_head=head)
    assert not found.sound
    assert "cut off" in found.problems[0]


@pytest.mark.parametrize("asked", [0, 1, 3])
def test_a_head_that_was_written_down_stays_good(make_guard, tmp_path, scoring, asked):
    ledger = tmp_path / "guard.db"
    with make_guard(ledger) as guard:
        for k in range(asked):
            guard.evaluate(scoring(0.7, k), prior=0.7)
        head = verify(ledger).head
        assert verify(ledger, expected_head=head).problems == []
        for k in range(asked, asked + 2):
            guard.evaluate(scoring(0.7, k), prior=0.7)
            assert verify(ledger, expected_head=head).problems == []


@for_each("head", ["", "00" * 32, "nonsense"])
def test_a_head_that_never_was_is_not_found(copied, head):
    ledger = copied()
    assert not verify(ledger, expected_head=head).sound


# ---- a forger who seals again

# of one column alone each change is tried in test_forged_facts.py, on every released ledger
FORGERIES = {  # of rows 2 (charged), 4 (charged in a batch), 5 (agreed in a batch), 10 (failed) and 11 (agreed)
    "the high end of an agreed answer": "high = high - 1e-6 WHERE query = 11",
    "the interval of a failure": "low = 0.4, high = 0.6 WHERE query = 10",
    "the value and prior of an agreed answer": "value = value + 0.01, prior = prior + 0.01 WHERE query = 11",
    "the value of a failure": "value = 0.5 WHERE query = 10",
    "a charge that is denied throughout": "charged = 0, nats = 0, value = prior, charges = 0, spent_nats = 0 "
    "WHERE query = 2",
    "the sum of charges": "charges = charges - 1 WHERE query > 2",
    "the sum of nats": "spent_nats = spent_nats - 1 WHERE query > 2",
    "a cell that there is not": "told = 'cell 6' WHERE query = 2",
    "no cell": "told = 'cell' WHERE query = 2",
    "a failure that is told as a cell": "told = 'cell 0' WHERE query = 10",
    "a charge that is told as agreement": "told = 'agreed' WHERE query = 4",
    "agreement that is told as a cell": "told = 'cell 3' WHERE query = 5",
    "a way to ask that there is not": "kind = 'look' WHERE query = 11",
    "queries that are denied": "asked = asked - 1 WHERE query > 2",
    "a query that took two": "asked = asked + 1 WHERE query = 11",
    "a charged value beside the middle of its cell": "value = value + 1e-6 WHERE query = 2",
    "a batch that was none": "batch = 10 WHERE query = 11",
    "a batch that is denied": "batch = query WHERE query BETWEEN 3 AND 9",
    "a batch that began before": "batch = 1 WHERE query = 2",
}  # fmt: skip


@for_each("name", FORGERIES)
def test_a_forgery_with_new_seals_is_found_by_recomputing(copied, name):
    ledger = copied()
    sql(ledger, (f"UPDATE answers SET {FORGERIES[name]}",))
    seal_again(ledger)
    assert tampered(ledger)


@pytest.mark.parametrize(("query", "changes"), [(2, {"told": "cell 3"}), (11, {"prior": 0.71})], ids=str)
def test_a_forgery_of_what_could_have_been_is_found_with_the_expected_head_only(ledger, query, changes):
    head = verify(ledger).head
    recompute(ledger, query, **changes)
    assert verify(ledger).sound
    assert not verify(ledger, expected_head=head).sound


def test_many_problems_are_told_in_few_words(make_guard, tmp_path, scoring):
    ledger = tmp_path / "guard.db"
    with make_guard(ledger) as guard:
        guard.evaluate([scoring(0.7, k) for k in range(30)], prior=[0.7] * 30)
    sql(ledger, ("UPDATE answers SET low = 0.0, high = 1.0",))
    seal_again(ledger)
    problems = verify(ledger).problems
    assert len(problems) == 21
    assert problems[-1] == "and 40 more"


@pytest.mark.parametrize("content", ["", "nonsense " * 1_000])
def test_what_is_no_ledger_cannot_be_verified(tmp_path, content):
    (tmp_path / "guard.db").write_text(content)
    refuses(LedgerError, "", verify, tmp_path / "guard.db")
    refuses(LedgerError, "there is no ledger", verify, tmp_path / "none.db")
    assert not (tmp_path / "none.db").exists()


def test_a_ledger_that_is_in_use_is_found_sound(tmp_path):
    from threading import Thread

    labels = np.random.default_rng(0).integers(0, 2, 500)
    path = tmp_path / "busy.db"
    guard = made_guard(None, labels, tolerance=0.25, queries=2_000, ledger=path)

    def ask():
        for number in range(400):
            guard.evaluate(labels, prior=1.0 - number / 10_000)

    asking = Thread(target=ask)
    asking.start()
    found = []
    while asking.is_alive():
        found.append(verify(path))
    asking.join()
    assert [verification.problems for verification in found] == [[]] * len(found)
    assert len(found) > 3
    guard.close()


# ---- found by trying to break it

IMPOSSIBLE = {
    "a prior above the bounds": (11, {"prior": 1.5}),
    "a prior below the bounds": (11, {"prior": -3.0}),
}


@for_each("name", IMPOSSIBLE)
def test_what_no_guard_can_release_is_found_however_well_it_is_forged(copied, name):
    ledger = copied()
    query, changes = IMPOSSIBLE[name]
    recompute(ledger, query, **changes)
    assert tampered(ledger)


MANGLED = {
    "no bounds": lambda c: c["plan"].pop("bounds"),
    "bounds of one number": lambda c: c["plan"].update(bounds=1),
    "no direction": lambda c: c["metric"].pop("greater_is_better"),
    "no metric": lambda c: c.update(metric=None),
    "a plan of text": lambda c: c.update(plan="plan"),
}


@for_each("name", MANGLED)
def test_a_mangled_configuration_with_new_seals_is_found_and_not_stumbled_over(copied, name):
    ledger = copied()
    configuration = json.loads(all_rows(ledger)[0])
    MANGLED[name](configuration)
    sql(ledger, ("UPDATE configuration SET text = ?", json.dumps(configuration)))
    seal_again(ledger)
    assert tampered(ledger)


def test_a_ledger_that_is_sound_can_be_shown(ledger):
    recompute(ledger, 11, asked_at=1e300)
    if verify(ledger).sound:
        assert len(released(ledger).history) == 11
