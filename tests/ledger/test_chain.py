"""The hash chain finds every change."""

import pytest
from cases import for_each, refuses
from contracts.ledger_contract import make_row
from hypothesis import given
from hypothesis import strategies as st

from reusable_holdout.errors import LedgerError
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


def test_a_sound_chain_has_no_problems_and_neither_has_one_without_its_last_commits(ledger):
    rows, seals = ledger
    assert chain_problems("{}", rows, seals) == chain_problems("{}", rows[:2], seals[:2]) == []


def test_a_digest_that_a_fixed_width_would_fill_up_has_no_seal():
    row = make_row(1)._replace(digest=b"d" * 31)
    refuses(LedgerError, "a digest of 32 bytes", seal, genesis("{}"), [row])
    assert chain_problems("{}", [row], chained([row._replace(digest=b"d" * 31 + b"\x00")])[1])


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
        assert any(f"its {column} is of the wrong type" in problem for problem in problems)


def test_what_was_sealed_wrong_is_named_once():
    first = make_row(1)
    rows, seals = chained([first], [make_row(2)._replace(digest=first.digest)])
    assert chain_problems("{}", rows, seals) == ["rows 1 and 2 answer the same question"]
    rows = [first, make_row(2)._replace(charges=5), make_row(3)._replace(charges=5)]
    rows, seals = chained(*[[row] for row in rows])
    assert chain_problems("{}", rows, seals) == ["the sums in row 2 do not continue those before"]


def test_the_changed_row_is_named_and_its_values_are_not(ledger):
    rows, seals = ledger
    problems = chain_problems("{}", [rows[0], rows[1]._replace(value=0.123456), *rows[2:]], seals)
    assert problems == ["row 2 was changed after being sealed, or a row near it was removed or added"]


OF_KIND = {int: st.integers(0, 2**62), float: st.floats(allow_nan=False), str: st.text(max_size=20)}
ROWS = st.builds(
    Row,
    **{name: OF_KIND[type(value)] for name, value in make_row(1)._asdict().items() if name != "digest"},
    digest=st.binary(min_size=32, max_size=32),
)


@given(st.lists(ROWS, max_size=4), st.lists(ROWS, max_size=4))
def test_different_rows_have_different_seals(one, other):
    same = repr(one) == repr(other)  # repr tells 0.0 from -0.0, as the seal does
    assert (seal(b"p" * 32, one) == seal(b"p" * 32, other)) == same


@given(ROWS, st.text(min_size=1, max_size=5))
def test_a_text_cannot_pass_for_a_part_of_another_or_of_another_row(row, moved):
    one = [row._replace(kind=row.kind + moved)]
    two = [row._replace(told=moved + row.told)]
    three = [row._replace(name=moved + row.name)]
    four = [row._replace(series=moved + row.series)]
    halves = [row._replace(name=moved), row]
    assert len({seal(b"p" * 32, rows) for rows in (one, two, three, four, halves)}) == 5
