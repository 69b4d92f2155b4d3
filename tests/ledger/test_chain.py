"""The hash chain finds what was changed."""

import pytest
from cases import for_each
from contracts.ledger_contract import make_row
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.ledger import Row, chain_problems, genesis, seal


def chained(*commits, configuration="{}"):
    rows, seals, previous = [], [], genesis(configuration)
    for commit in commits:
        previous = seal(previous, commit)
        rows += commit
        seals.append((commit[-1].query, previous))
    return rows, seals


@pytest.fixture
def ledger():
    first = make_row(1)
    second = make_row(2, charged=1, nats=2.0, before=first, name="b")
    batch = [make_row(query, before=second, batch=3) for query in (3, 4, 5)]
    return chained([first], [second], batch)


def test_a_sound_chain_has_no_problems(ledger):
    assert chain_problems("{}", *ledger) == []


CHANGES = {
    "query": 9,
    "batch": 1,
    "digest": b"x" * 32,
    "prior": 0.91,
    "value": 0.91,
    "charged": 1,
    "threshold": 0.04,
    "tolerance": 0.02,
    "low": 0.7,
    "high": 0.96,
    "nats": 0.5,
    "charges": 3,
    "spent_nats": 9.0,
    "asked": 9,
    "view": 1,
    "kind": "reveal",
    "told": "cell 0",
    "asked_at": 0.0,
    "name": "other",
    "series": "other",
}


@for_each("place", range(5))
@for_each("column", Row._fields)
def test_a_change_of_any_column_of_any_row_is_found(ledger, column, place):
    rows, seals = ledger
    changed = rows[place]._replace(**{column: CHANGES[column]})
    if changed == rows[place]:
        changed = rows[place]._replace(**{column: CHANGES[column] - 1})
    assert chain_problems("{}", [*rows[:place], changed, *rows[place + 1 :]], seals)


@for_each("place", range(4))
def test_a_removed_row_is_found(ledger, place):
    rows, seals = ledger
    without = rows[:place] + rows[place + 1 :]
    renumbered = [row._replace(query=number) for number, row in enumerate(without, start=1)]
    assert chain_problems("{}", without, seals)
    assert chain_problems("{}", renumbered, [(min(last, 4), sealed) for last, sealed in seals])


def test_a_batch_cut_short_is_found(ledger):
    rows, seals = ledger
    assert chain_problems("{}", rows[:4], seals)
    assert chain_problems("{}", rows[:4], seals[:2])


def test_swapped_rows_are_found(ledger):
    rows, seals = ledger
    swapped = [rows[0]._replace(digest=rows[1].digest), rows[1]._replace(digest=rows[0].digest), *rows[2:]]
    assert chain_problems("{}", swapped, seals)


def test_an_added_row_is_found(ledger):
    rows, seals = ledger
    assert chain_problems("{}", [*rows, make_row(6, before=rows[-1])], seals)


def test_another_configuration_is_found(ledger):
    assert chain_problems('{"charges":1000}', *ledger)


def test_another_order_of_seals_is_found(ledger):
    rows, seals = ledger
    assert chain_problems("{}", rows, [seals[1], seals[0], seals[2]])


@for_each("extra", [b"x", b"\x00"])
def test_a_longer_digest_is_found(ledger, extra):
    """A fixed-width encoding would cut it off without a word."""
    rows, seals = ledger
    assert chain_problems("{}", [rows[0]._replace(digest=rows[0].digest + extra), *rows[1:]], seals)


def test_a_shorter_digest_is_found():
    rows, seals = chained([make_row(1)._replace(digest=b"d" * 31 + b"\x00")])
    assert chain_problems("{}", [rows[0]._replace(digest=b"d" * 31)], seals)


@for_each("wrong", ["text", None, b"bytes", 1.5])
@for_each("column", Row._fields)
def test_what_no_ledger_writes_is_a_problem_and_not_a_crash(ledger, column, wrong):
    """SQLite keeps whatever another program puts into a column."""
    rows, seals = ledger
    if wrong == "text" and column == "name":
        wrong = "b' OR 1"
    changed = rows[1]._replace(**{column: wrong})
    problems = chain_problems("{}", [rows[0], changed, *rows[2:]], seals)
    assert problems
    if type(wrong) is not type(getattr(rows[1], column)):
        assert any(f"its {column} must be of another type" in problem for problem in problems)


@for_each("wrong", ["text", None, 5, b"short"])
def test_a_seal_of_another_type_is_a_problem_and_not_a_crash(ledger, wrong):
    rows, seals = ledger
    assert chain_problems("{}", rows, [(1, wrong), *seals[1:]])
    assert chain_problems("{}", rows, [*seals[:2], (5, wrong)])


@for_each("last", [0, -1, 1, 9, None, "1"])
def test_a_seal_at_no_row_of_its_own_is_a_problem(ledger, last):
    rows, seals = ledger
    assert chain_problems("{}", rows, [seals[0], (last, seals[1][1]), seals[2]])


def test_a_ledger_without_its_last_commits_is_a_sound_one_with_an_earlier_head(ledger):
    rows, seals = ledger
    assert chain_problems("{}", rows[:2], seals[:2]) == []


def test_a_repeated_question_is_named():
    first = make_row(1)
    rows, seals = chained([first], [make_row(2)._replace(digest=first.digest)])
    assert chain_problems("{}", rows, seals) == ["rows 1 and 2 answer the same question"]


def test_sums_that_were_sealed_wrong_are_named_once():
    rows = [make_row(1), make_row(2)._replace(charges=5), make_row(3)._replace(charges=5)]
    rows, seals = chained(*[[row] for row in rows])
    assert chain_problems("{}", rows, seals) == ["the sums in row 2 do not continue those before"]


def test_the_changed_row_is_named_and_its_values_are_not(ledger):
    rows, seals = ledger
    problems = chain_problems("{}", [rows[0], rows[1]._replace(value=0.123456), *rows[2:]], seals)
    assert problems == ["row 2 was changed after being sealed, or a row near it was removed or added"]


floats = st.floats(allow_nan=False)
rows_of_any_kind = st.builds(
    Row,
    query=st.integers(1, 2**62),
    batch=st.integers(1, 2**62),
    digest=st.binary(min_size=32, max_size=32),
    prior=floats,
    value=floats,
    charged=st.integers(0, 1),
    threshold=floats,
    low=floats,
    high=floats,
    nats=floats,
    charges=st.integers(0, 2**62),
    spent_nats=floats,
    asked_at=floats,
    asked=st.integers(0, 2**62),
    view=st.integers(0, 2**62),
    kind=st.text(max_size=20),
    told=st.text(max_size=20),
    name=st.text(max_size=20),
)


@given(st.lists(rows_of_any_kind, max_size=4), st.lists(rows_of_any_kind, max_size=4))
def test_different_rows_have_different_seals(one, other):
    same = repr(one) == repr(other)  # repr tells 0.0 from -0.0, as the seal does
    assert (seal(b"p" * 32, one) == seal(b"p" * 32, other)) == same


@given(rows_of_any_kind, st.text(max_size=5), st.text(max_size=5))
def test_a_name_cannot_pass_for_another_row(row, left, right):
    one = [row._replace(name=left + right)]
    two = [row._replace(name=left), row._replace(name=right)]
    assert seal(b"p" * 32, one) != seal(b"p" * 32, two)


@given(rows_of_any_kind, st.text(min_size=1, max_size=5))
def test_what_was_told_cannot_pass_for_a_part_of_its_kind_or_name(row, moved):
    one = [row._replace(kind=row.kind + moved)]
    two = [row._replace(told=moved + row.told)]
    three = [row._replace(name=moved + row.name, told=row.told)]
    seals = {seal(b"p" * 32, rows) for rows in (one, two, three)}
    assert len(seals) == 3
