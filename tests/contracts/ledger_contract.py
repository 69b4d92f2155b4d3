"""The contract of every ledger, as one class of tests that is run on each database."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from cases import refuses

from reusable_holdout.errors import LedgerError, RotatedError
from reusable_holdout.ledger import Row, chain_problems, genesis


def make_row(
    query, *, charged=0, nats=0.0, takes=1, kind="check", before=None, batch=None, name="", series="", view=0
):
    sums = (0, 0.0, query - 1) if before is None else (before.charges, before.spent_nats, before.asked)
    charges, spent, asked = (sum(pair) for pair in zip(sums, (charged, nats, takes), strict=True))
    value, told = (0.85, "cell 3") if charged else (0.9, "agreed")
    numbers = (0.9, value, charged, 0.03, 0.0, 0.8, 0.95, nats, charges, spent, asked, 1.7e9, view)
    return Row(query, batch or query, query.to_bytes(32, "big"), *numbers, kind, told, name, series)


def append(ledger, *rows):
    with ledger.transaction() as transaction:
        transaction.append(rows)


def rotate(ledger, configuration, known_rows=b""):
    """Begin the next epoch; return the ledger that stands at it."""
    with ledger.transaction() as transaction:
        transaction.rotate(configuration, known_rows)
    return ledger.latest()


FIRST, SECOND = make_row(1, name="größe 'x'; --"), make_row(2, charged=1, nats=2.5)


class LedgerContract:
    """Subclasses give a fixture `ledger`: an empty one, without configuration."""

    @pytest.fixture
    def configured(self, ledger):
        assert ledger.create("{}", b"\x00known") == "{}"
        return ledger

    def another(self, ledger):
        """Return the same ledger as another process sees it; None if no other can."""
        return

    def test_an_empty_ledger_ends_at_its_configuration_which_is_never_replaced(self, ledger):
        assert ledger.configuration() is None
        assert ledger.create("{}") == ledger.create("second") == ledger.configuration() == "{}"
        assert tuple(ledger.tail()) == (0, 0, 0.0, 0, "", genesis("{}"), b"", 0)
        assert (ledger.rows(), ledger.seals(), ledger.charged(9)) == ([], [], [])

    def test_rows_come_back_as_they_were_written_and_are_looked_up_by_their_digests(self, configured):
        append(configured, FIRST)
        append(configured, SECOND)
        assert configured.rows() == [FIRST, SECOND]
        assert configured.rows(after=1) == [SECOND]
        assert configured.tail()[:3] == (2, 1, 2.5)
        unknown = b"u" * 32
        assert configured.look(FIRST.digest) == (configured.tail(), FIRST)
        assert configured.find(unknown) is None
        with configured.transaction(SECOND.digest) as transaction:
            assert (transaction.tail.query, transaction.row) == (2, SECOND)
            assert transaction.find([unknown, FIRST.digest]) == {FIRST.digest: FIRST}
            assert transaction.rows(1) == [SECOND]

    @pytest.mark.parametrize(("rows", "questions"), [(1, 3_000), (2_000, 1_200), (2_000, 2), (2_000, 501)])
    def test_a_batch_is_looked_up_however_many_rows_there_are(self, configured, rows, questions):
        append(configured, *(make_row(number, batch=1) for number in range(1, rows + 1)))
        asked = [number.to_bytes(32, "big") for number in range(1, questions + 1)]
        with configured.transaction() as transaction:
            assert sorted(transaction.find(asked)) == asked[:rows]

    def test_charges_and_ways_to_ask_are_found(self, configured):
        rows, before = [], None
        for query in range(1, 7):
            kind = "view" if query in {2, 5} else "check"
            before = make_row(query, charged=query % 2, kind=kind, before=before, batch=1)
            rows.append(before)
        append(configured, *rows)
        assert (configured.charged(2), configured.charged(9)) == ([1, 3], [1, 3, 5])
        assert configured.rows(kind="view") == [rows[1], rows[4]]
        assert configured.rows(2, kind="view") == rows[4:5]
        with configured.transaction() as transaction:
            assert transaction.rows(kind="view") == [rows[1], rows[4]]
        now = rotate(configured, "second")
        assert (now.charged(2), now.rows(kind="view")) == ([], [])
        now.close()

    def test_the_tail_says_what_was_taken_and_where_the_last_charge_was(self, configured):
        def ends():
            tail = configured.tail()
            return tail.query, tail.asked, tail.kind, tail.last_charge, tail.last_charged

        choice = make_row(1, kind="choose", takes=30)
        append(configured, choice)
        assert ends() == (1, 30, "choose", 0, b"")
        charged = make_row(2, charged=1, before=choice)
        append(configured, charged)
        batch = [make_row(3, batch=3, charged=1, before=charged)]
        batch.append(make_row(4, batch=3, before=batch[0], kind="final", takes=0))
        append(configured, *batch)
        assert ends() == (4, 32, "final", 32, batch[0].digest)
        refuses(LedgerError, "continue", append, configured, make_row(5, before=batch[1])._replace(asked=31))
        now = rotate(configured, "second")
        assert tuple(now.tail()) == (0, 0, 0.0, 0, "", genesis("second"), b"", 0)
        now.close()

    def test_beside_its_transaction_a_thread_is_refused_and_loses_no_rows(self, configured):
        uses = [
            *(configured.tail, configured.rows, configured.seals, configured.configuration, configured.close),
            lambda: append(configured, FIRST),
        ]
        with configured.transaction() as transaction:
            transaction.append([FIRST])
            for use in uses:
                refuses(LedgerError, "used beside it", use)
        assert configured.rows() == [FIRST]
        for use in (
            lambda: transaction.find([FIRST.digest]),
            transaction.rows,
            lambda: transaction.append([SECOND]),
        ):
            with pytest.raises(LedgerError):  # the block has ended
                use()
        assert configured.rows() == [FIRST]

    @pytest.mark.parametrize("caught", [False, True])
    def test_a_question_is_answered_once_and_a_batch_that_repeats_one_is_not_half_written(
        self, configured, caught
    ):
        append(configured, FIRST)
        batch = [make_row(query, batch=2) for query in (2, 3, 4)]
        batch[2] = batch[2]._replace(digest=FIRST.digest)
        with pytest.raises(LedgerError), configured.transaction() as transaction:
            try:
                transaction.append(batch)
            except LedgerError:
                if not caught:
                    raise
        assert configured.rows() == [FIRST]
        assert chain_problems("{}", configured.rows(), configured.seals()) == []
        append(configured, make_row(2))

    def test_what_a_block_raises_leaves_nothing(self, configured):
        for use in ("append", "rotate"):
            with pytest.raises(ZeroDivisionError), configured.transaction() as transaction:
                getattr(transaction, use)([FIRST] if use == "append" else "second")
                raise ZeroDivisionError
        assert (configured.rows(), configured.configurations()) == ([], ["{}"])

    def test_a_transaction_appends_or_rotates_once(self, configured):
        for uses in (["append", "append"], ["rotate", "append"], ["append", "rotate"], ["rotate", "rotate"]):
            with pytest.raises(LedgerError, match="once"), configured.transaction() as transaction:
                for use in uses:
                    getattr(transaction, use)("second" if use == "rotate" else [FIRST])
        assert (configured.configurations(), configured.rows()) == (["{}"], [])

    def test_an_epoch_begins_without_rows_and_the_past_stays_readable(self, configured):
        append(configured, FIRST)
        now = rotate(configured, "second")
        assert (configured.epoch, now.epoch) == (1, 2)
        assert (configured.configuration(), now.configuration()) == ("{}", "second")
        assert now.configurations() == ["{}", "second"]
        assert now.find(FIRST.digest) is None
        append(now, FIRST._replace(value=0.25), make_row(2, batch=1))
        assert (len(now.rows()), now.rows(epoch=1), now.rows(epoch=3)) == (2, [FIRST], [])
        assert chain_problems("{}", now.rows(epoch=1), now.seals(epoch=1)) == []
        assert chain_problems("second", now.rows(), now.seals()) == []
        last = rotate(now, "third", b"of the third")
        for one in (configured, last):
            assert [one.known_rows(epoch) for epoch in (1, 2, 3, 4)] == [
                b"\x00known",
                b"",
                b"of the third",
                b"",
            ]
        for one in (now, last):
            one.close()

    def test_nothing_is_written_before_there_is_a_configuration(self, ledger):
        for write in (lambda: rotate(ledger, "second"), lambda: append(ledger, FIRST)):
            refuses(LedgerError, "create first", write)
        assert (ledger.configurations(), ledger.rows()) == ([], [])

    def test_a_ledger_at_a_past_epoch_reads_it_and_writes_no_more(self, configured):
        append(configured, FIRST)
        other = self.another(configured)
        now = rotate(configured, "second")
        for old in filter(None, [configured, other]):
            for _ in range(2):  # before the new epoch has rows, and after
                for write in (lambda old=old: append(old, SECOND), lambda old=old: rotate(old, "third")):
                    refuses(RotatedError, "last epoch, 2", write)
                assert (old.epoch, old.rows(), old.tail().query) == (1, [FIRST], 1)
                assert old.find(FIRST.digest) == FIRST
                append(now, make_row(now.tail().query + 1))
            old.close()
        now.close()

    def test_a_closed_ledger_says_so_and_can_be_closed_twice(self, configured):
        assert not configured.closed
        configured.close()
        configured.close()
        assert configured.closed
        for use in (
            *(configured.tail, configured.rows, configured.seals, configured.configuration),
            lambda: configured.find(FIRST.digest),
            lambda: configured.create("{}"),
            lambda: append(configured, FIRST),
        ):
            refuses(LedgerError, "closed", use)

    def test_threads_take_turns(self, configured):
        def ask(_):
            with configured.transaction() as transaction:
                transaction.append([make_row(transaction.tail.query + 1)])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(ask, range(100)))
        assert [row.query for row in configured.rows()] == list(range(1, 101))
