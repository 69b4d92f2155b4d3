"""What every ledger must do: one class, run on every backend."""

import pytest

from reusable_holdout.errors import LedgerError, RotatedError
from reusable_holdout.ledger import Row, chain_problems, genesis


def make_row(
    query, *, charged=0, nats=0.0, takes=1, kind="check", before=None, batch=None, name="", series="", view=0
):
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
        tolerance=0.0,
        low=0.8,
        high=0.95,
        nats=nats,
        charges=charges,
        spent_nats=spent,
        asked=(before.asked if before else query - 1) + takes,
        asked_at=1.7e9,
        view=view,
        kind=kind,
        told="cell 3" if charged else "agreed",
        name=name,
        series=series,
    )


def append(ledger, *rows):
    with ledger.transaction() as transaction:
        transaction.append(rows)


def rotate(ledger, configuration):
    with ledger.transaction() as transaction:
        transaction.rotate(configuration)


class LedgerContract:
    """Subclasses give a fixture `ledger`: an empty one, without configuration."""

    def test_an_empty_ledger_ends_at_its_configuration(self, ledger):
        assert ledger.configuration() is None
        assert ledger.create("{}") == "{}"
        assert tuple(ledger.tail()) == (0, 0, 0.0, 0, "", genesis("{}"), b"", 0)
        assert ledger.rows() == []
        assert ledger.seals() == []

    def test_a_configuration_is_never_replaced(self, ledger):
        assert ledger.create("first") == "first"
        assert ledger.create("second") == "first"
        assert ledger.configuration() == "first"

    def test_what_was_charged_first_and_what_was_asked_in_one_way_is_found(self, ledger):
        ledger.create("{}")
        assert (ledger.charged(2), ledger.rows(kind="view")) == ([], [])
        rows, before = [], None
        for query in range(1, 7):
            kind = "view" if query in {2, 5} else "check"
            before = make_row(query, charged=query % 2, kind=kind, before=before, batch=1)
            rows.append(before)
        append(ledger, *rows)
        assert (ledger.charged(2), ledger.charged(9)) == ([1, 3], [1, 3, 5])
        assert ledger.rows(kind="view") == [rows[1], rows[4]]
        rotate(ledger, "second")
        now = ledger.latest()
        assert (now.charged(2), now.rows(kind="view")) == ([], [])
        now.close()

    def test_what_rows_are_known_by_is_kept_for_each_epoch(self, ledger):
        ledger.create("first", b"\x00known")
        ledger.create("second", b"others")
        with pytest.raises(ZeroDivisionError), ledger.transaction() as transaction:
            transaction.rotate("second", b"never")
            raise ZeroDivisionError
        rotate(ledger, "second")
        now = ledger.latest()
        with now.transaction() as transaction:
            transaction.rotate("third", b"of the third")
        for one in (ledger, now):
            assert [one.known_rows(epoch) for epoch in (1, 2, 3, 4)] == [
                b"\x00known",
                b"",
                b"of the third",
                b"",
            ]
        now.close()

    def test_rows_come_back_as_they_were_written(self, ledger):
        ledger.create("{}")
        first = make_row(1, name="größe 'x'; --")
        second = make_row(2, charged=1, nats=2.5, before=first)
        append(ledger, first)
        append(ledger, second)
        assert ledger.rows() == [first, second]
        assert ledger.rows(after=1) == [second]
        assert ledger.tail()[:3] == (2, 1, 2.5)

    def test_the_tail_says_how_many_queries_were_taken_and_how_the_last_was_asked(self, ledger):
        ledger.create("{}")
        choice = make_row(1, kind="choose", takes=30)
        append(ledger, choice)
        assert (ledger.tail().query, ledger.tail().asked, ledger.tail().kind) == (1, 30, "choose")
        append(ledger, make_row(2, kind="final", takes=0, before=choice))
        assert (ledger.tail().query, ledger.tail().asked, ledger.tail().kind) == (2, 30, "final")
        with pytest.raises(LedgerError, match="continue"):
            append(ledger, make_row(3)._replace(asked=29))

    def test_the_last_charge_is_found_with_the_queries_that_were_taken_up_to_it(self, ledger):
        def last(ledger):
            return ledger.tail().last_charge, ledger.tail().last_charged

        ledger.create("{}")
        assert last(ledger) == (0, b"")
        choice = make_row(1, kind="choose", takes=30)
        append(ledger, choice)
        assert last(ledger) == (0, b"")
        first = make_row(2, charged=1, before=choice)
        batch = [make_row(3, batch=3, charged=1, before=first)]
        batch.append(make_row(4, batch=3, before=batch[0]))
        append(ledger, first)
        append(ledger, *batch)
        assert last(ledger) == (32, batch[0].digest)
        with ledger.transaction() as transaction:
            assert (transaction.tail.last_charge, transaction.tail.last_charged) == (32, batch[0].digest)
        append(ledger, make_row(5, before=batch[1]))
        assert last(ledger) == (32, batch[0].digest)
        rotate(ledger, "second")
        now = ledger.latest()
        assert (last(now), last(ledger)) == ((0, b""), (32, batch[0].digest))
        now.close()

    def another(self, ledger):
        """Give the same ledger as another process sees it; None if none can."""
        return

    def test_a_read_inside_a_transaction_is_refused_and_costs_no_rows(self, ledger):
        ledger.create("{}")
        uses = (
            ledger.tail,
            ledger.rows,
            ledger.seals,
            ledger.configuration,
            ledger.close,
            lambda: ledger.find(make_row(1).digest),
            lambda: append(ledger, make_row(1)),
        )
        with ledger.transaction() as transaction:
            transaction.append([make_row(1)])
            for use in uses:
                with pytest.raises(LedgerError, match="used beside it"):
                    use()
        assert ledger.rows() == [make_row(1)]

    def test_a_transaction_ends_with_its_block(self, ledger):
        ledger.create("{}")
        with ledger.transaction() as transaction:
            transaction.append([make_row(1)])
        for use in (
            lambda: transaction.find([make_row(1).digest]),
            lambda: transaction.append([make_row(2)]),
        ):
            with pytest.raises(LedgerError):
                use()
        assert ledger.rows() == [make_row(1)]

    def test_a_failure_caught_inside_the_block_leaves_nothing_half_written(self, ledger):
        """The first rows of a batch whose last repeats an earlier question must not stay."""
        ledger.create("{}")
        append(ledger, make_row(1))
        batch = [make_row(2, batch=2), make_row(3, batch=2), make_row(4, batch=2)]
        batch[2] = batch[2]._replace(digest=make_row(1).digest)
        with pytest.raises(LedgerError), ledger.transaction() as transaction:
            with pytest.raises(LedgerError):
                transaction.append(batch)
            raise LedgerError("as the guard would")
        assert ledger.rows() == [make_row(1)]
        assert chain_problems("{}", ledger.rows(), ledger.seals()) == []
        append(ledger, make_row(2))

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

    def test_an_epoch_begins_without_rows_and_the_past_stays_readable(self, ledger):
        ledger.create("first")
        append(ledger, make_row(1))
        rotate(ledger, "second")
        now = ledger.latest()
        assert (ledger.epoch, now.epoch) == (1, 2)
        assert (ledger.configuration(), now.configuration()) == ("first", "second")
        assert now.configurations() == ["first", "second"]
        assert tuple(now.tail()) == (0, 0, 0.0, 0, "", genesis("second"), b"", 0)
        assert now.find(make_row(1).digest) is None
        append(now, make_row(1)._replace(value=0.25), make_row(2, batch=1))
        assert len(now.rows()) == 2
        assert now.rows(epoch=1) == [make_row(1)]
        assert chain_problems("first", now.rows(epoch=1), now.seals(epoch=1)) == []
        assert chain_problems("second", now.rows(), now.seals()) == []
        assert now.rows(epoch=3) == []
        now.close()

    def test_an_epoch_that_fails_to_begin_never_began(self, ledger):
        ledger.create("first")
        with pytest.raises(ValueError, match="as the guard would"), ledger.transaction() as transaction:
            transaction.rotate("second")
            raise ValueError("as the guard would")
        assert ledger.configurations() == ["first"]
        append(ledger, make_row(1))

    def test_a_transaction_appends_or_rotates(self, ledger):
        ledger.create("first")
        for uses in (["rotate", "append"], ["append", "rotate"], ["rotate", "rotate"]):
            with pytest.raises(LedgerError, match="once"), ledger.transaction() as transaction:
                for use in uses:
                    getattr(transaction, use)("second" if use == "rotate" else [make_row(1)])
        assert (ledger.configurations(), ledger.rows()) == (["first"], [])

    def test_an_epoch_needs_one_before_it(self, ledger):
        with pytest.raises(LedgerError, match="create first"):
            rotate(ledger, "second")
        assert ledger.configurations() == []

    def test_who_stands_at_a_past_epoch_reads_it_and_writes_no_more(self, ledger):
        ledger.create("first")
        append(ledger, make_row(1))
        other = self.another(ledger)
        rotate(ledger, "second")
        now = ledger.latest()
        for old in filter(None, [ledger, other]):
            for _ in range(2):  # before the new epoch has rows, and after
                with pytest.raises(RotatedError, match="last epoch, 2"):
                    append(old, make_row(2))
                with pytest.raises(RotatedError, match="last epoch, 2"):
                    rotate(old, "third")
                assert (old.epoch, old.rows(), old.tail().query) == (1, [make_row(1)], 1)
                assert old.find(make_row(1).digest) == make_row(1)
                append(now, make_row(now.tail().query + 1))
            old.close()
        now.close()

    def test_a_closed_ledger_says_so(self, ledger):
        ledger.create("{}")
        ledger.close()
        for use in (
            ledger.tail,
            ledger.rows,
            ledger.seals,
            ledger.configuration,
            lambda: ledger.find(make_row(1).digest),
            lambda: ledger.create("{}"),
            lambda: append(ledger, make_row(1)),
        ):
            with pytest.raises(LedgerError, match="closed"):
                use()

    def test_a_ledger_can_be_closed_twice(self, ledger):
        assert not ledger.closed
        ledger.close()
        ledger.close()
        assert ledger.closed

    def test_threads_take_turns(self, ledger):
        from concurrent.futures import ThreadPoolExecutor

        ledger.create("{}")

        def ask(_):
            with ledger.transaction() as transaction:
                transaction.append([make_row(transaction.tail.query + 1)])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(100)))
        assert [row.query for row in ledger.rows()] == list(range(1, 101))
