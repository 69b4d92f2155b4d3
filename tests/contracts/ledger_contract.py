"""What every ledger must do: one class, run on every backend."""

import pytest

from reusable_holdout.errors import LedgerError
from reusable_holdout.ledger import Row, chain_problems, genesis, seal


def make_row(query, *, charged=0, nats=0.0, before=None, batch=None, name=""):
    charges = (before.charges if before else 0) + charged
    spent = (before.spent_nats if before else 0.0) + nats
    return Row(
        query=query,
        batch=batch or query,
        digest=query.to_bytes(32, "big"),
        prior=0.9,
        value=0.9 - 0.05 * charged,
        charged=charged,
        threshold=0.03,
        low=0.8,
        high=0.95,
        nats=nats,
        charges=charges,
        spent_nats=spent,
        asked_at=1.7e9,
        name=name,
    )


def append(ledger, *rows):
    with ledger.transaction() as transaction:
        transaction.append(rows)


class LedgerContract:
    """Subclasses give a fixture `ledger`: an empty one, without configuration."""

    def test_an_empty_ledger_ends_at_its_configuration(self, ledger):
        assert ledger.configuration() is None
        assert ledger.create("{}") == "{}"
        assert tuple(ledger.tail()) == (0, 0, 0.0, genesis("{}"))
        assert ledger.rows() == []
        assert ledger.seals() == []

    def test_a_configuration_is_never_replaced(self, ledger):
        assert ledger.create("first") == "first"
        assert ledger.create("second") == "first"
        assert ledger.configuration() == "first"

    def test_rows_come_back_as_they_were_written(self, ledger):
        ledger.create("{}")
        first = make_row(1, name="größe 'x'; --")
        second = make_row(2, charged=1, nats=2.5, before=first)
        append(ledger, first)
        append(ledger, second)
        assert ledger.rows() == [first, second]
        assert ledger.rows(after=1) == [second]
        assert ledger.tail()[:3] == (2, 1, 2.5)

    def test_each_commit_is_sealed_once(self, ledger):
        ledger.create("{}")
        first, batch = make_row(1), [make_row(2, batch=2), make_row(3, batch=2)]
        append(ledger, first)
        append(ledger, *batch)
        one = seal(genesis("{}"), [first])
        assert ledger.seals() == [(1, one), (3, seal(one, batch))]
        assert chain_problems("{}", ledger.rows(), ledger.seals()) == []

    def test_questions_are_found_by_their_digests(self, ledger):
        ledger.create("{}")
        rows = [make_row(query, batch=1) for query in range(1, 1202)]
        append(ledger, *rows)
        with ledger.transaction() as transaction:
            assert transaction.find([rows[0].digest]) == {rows[0].digest: rows[0]}
            assert transaction.find([b"?" * 32]) == {}
            wanted = [row.digest for row in rows] + [b"?" * 32]
            assert transaction.find(wanted) == {row.digest: row for row in rows}

    @pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt])
    def test_nothing_is_written_when_the_block_fails(self, ledger, failure):
        ledger.create("{}")
        with pytest.raises(failure), ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            raise failure
        assert ledger.rows() == []
        append(ledger, make_row(1))
        assert ledger.tail().query == 1

    @pytest.mark.parametrize(
        "wrong",
        [
            make_row(2),
            make_row(1)._replace(charges=1),
            make_row(1)._replace(spent_nats=1.0),
            make_row(1)._replace(high=float("nan")),
            make_row(1)._replace(value=float("inf")),
        ],
    )
    def test_rows_that_do_not_continue_the_ledger_are_refused(self, ledger, wrong):
        ledger.create("{}")
        with pytest.raises(LedgerError, match="continue"):
            append(ledger, wrong)
        assert ledger.rows() == []

    def test_a_question_is_answered_once(self, ledger):
        ledger.create("{}")
        append(ledger, make_row(1))
        with pytest.raises(LedgerError):
            append(ledger, make_row(2)._replace(digest=make_row(1).digest))
        assert len(ledger.rows()) == 1

    def test_a_transaction_appends_once(self, ledger):
        ledger.create("{}")
        with pytest.raises(LedgerError, match="once"), ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            transaction.append([make_row(2)])
        assert ledger.rows() == []

    def test_a_closed_ledger_says_so(self, ledger):
        ledger.create("{}")
        ledger.close()
        for use in (
            ledger.tail,
            ledger.rows,
            ledger.seals,
            ledger.configuration,
            lambda: append(ledger, make_row(1)),
        ):
            with pytest.raises(LedgerError, match="closed"):
                use()

    def test_threads_take_turns(self, ledger):
        from concurrent.futures import ThreadPoolExecutor

        ledger.create("{}")

        def ask(_):
            with ledger.transaction() as transaction:
                transaction.append([make_row(transaction.tail.query + 1)])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(100)))
        assert [row.query for row in ledger.rows()] == list(range(1, 101))
