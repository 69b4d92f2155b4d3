"""Files that need much memory or time are refused, and the next one is read."""

import io
import os
import signal
import subprocess

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from long_tests import QUERIES
from reusable_holdout_leaderboard import Expected, SubmissionError, parse_submission
from reusable_holdout_leaderboard.files import decoder as decoder_module
from reusable_holdout_leaderboard.files.decoder import Decoder, DecoderError

ROWS = 2_000
IDS = tuple(f"r{row}" for row in range(ROWS))
SCORES = Expected(ids=IDS, rows=ROWS, id_column="id", columns=("score",), response="scores")
CLASSES = Expected(
    ids=IDS, rows=ROWS, id_column="id", columns=("prediction",), response="labels", classes=("no", "yes")
)
MEGABYTE = 1 << 20
LONG = pytest.mark.long(*QUERIES, "integrations/reusable_holdout_leaderboard")


@pytest.fixture
def decoder(closed_at_the_end):
    return closed_at_the_end(Decoder())


def parquet(**columns):
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="zstd")
    return buffer.getvalue()


def honest(order=range(ROWS)):
    return parquet(id=[IDS[row] for row in order], score=[row / ROWS for row in order])


def repeated(length, rows=ROWS):
    """Return a column of one long text, which a dictionary holds once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * length]))


def small_csv():
    return ("id,score\n" + "".join(f"{one},0\n" for one in IDS)).encode()


def big_csv(expected, value="0.5"):
    rows = "".join(f"{one},{value:<600}\n" for one in expected.ids)
    return f"{','.join(expected.header())}\n{rows}".encode()


def read(decoder, content, name="x.parquet", expected=SCORES):
    return expected.decoded(decoder.decode(content, name, expected.form))


@pytest.fixture
def take_over(decoder, monkeypatch):
    """Replace the process by one that reads everything, and whose answer is stated."""

    def begin(form, said):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        other = subprocess.Popen(["/bin/sh", "-c", "exec cat > /dev/null"], **pipes)
        decoder._running = decoder_module._Process(other, form, 30.0)
        monkeypatch.setattr(decoder_module, "receive", lambda *_, **__: said)

    return begin


def of_process(decoder):
    return psutil.Process(decoder._running.process.pid)


def test_the_process_reads_the_same_as_this_one(decoder):
    order = np.random.default_rng(0).permutation(ROWS)
    for content, name in ((honest(order), "a.parquet"), (big_csv(SCORES), "b.csv")):
        there = parse_submission(content, name, SCORES, elsewhere=decoder.decode)
        assert (there == parse_submission(content, name, SCORES)).all()
        assert decoder._running is not None
    content = big_csv(CLASSES, "yes")
    assert set(read(decoder, content, "c.csv", CLASSES)) == {"yes"}
    assert (read(decoder, content, "c.csv", CLASSES) == parse_submission(content, "c.csv", CLASSES)).all()


def test_probabilities_and_rows_without_ids_keep_their_shape(decoder):
    columns = ("x", "y")
    rows = {"ids": None, "rows": 3, "id_column": None, "columns": columns}
    expected = Expected(**rows, response="probabilities", classes=(0, 1))
    content = parquet(x=[0.25, 0.5, 1.0], y=[0.75, 0.5, 0.0])
    found = read(decoder, content, "p.parquet", expected)
    assert found.tolist() == [[0.25, 0.75], [0.5, 0.5], [1, 0]]


def test_small_csv_files_start_no_process(decoder):
    assert parse_submission(small_csv(), "x.csv", SCORES, elsewhere=decoder.decode).tolist() == [0.0] * ROWS
    assert decoder._running is None


def test_a_file_that_does_not_fit_is_explained_and_ends_nothing(decoder):
    with pytest.raises(SubmissionError, match="1 id missing: 'r1999'"):
        read(decoder, parquet(id=IDS[:-1], score=[0.5] * (ROWS - 1)))
    number = of_process(decoder).pid
    read(decoder, honest())
    assert of_process(decoder).pid == number


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_and_the_next_one_is_read(decoder):
    content = parquet(id=list(IDS), score=repeated(1 << 20))
    assert len(content) < 51_000
    before = psutil.Process().memory_info().rss
    with pytest.raises(SubmissionError, match="this one takes more"):
        read(decoder, content)
    assert psutil.Process().memory_info().rss - before < 64 * MEGABYTE
    assert read(decoder, honest())[-1] == 1 - 1 / ROWS


def test_nested_columns_are_refused_before_they_are_read(decoder):
    content = parquet(id=list(IDS), score=[[0.0] * 1_000] * ROWS)
    with pytest.raises(SubmissionError, match="columns must hold text or numbers"):
        read(decoder, content)


def test_each_file_has_some_seconds_of_the_processor(decoder):
    for _ in range(2):
        read(decoder, honest())
        used = sum(of_process(decoder).cpu_times()[:2])
        soft, _ = of_process(decoder).rlimit(psutil.RLIMIT_CPU)
        assert soft <= used + 3 + ROWS / 500_000 + 1


def test_a_file_that_takes_too_long_on_the_clock_is_refused(decoder, monkeypatch):
    read(decoder, honest())
    os.kill(of_process(decoder).pid, signal.SIGSTOP)  # it will never answer
    with monkeypatch.context() as patch:
        patch.setattr(decoder_module, "_WAIT", 0)
        with pytest.raises(SubmissionError, match="within some seconds"):
            read(decoder, honest())
    assert len(read(decoder, honest())) == ROWS


def test_the_process_knows_no_secret_and_leaves_no_core(decoder, monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_DATABASE", "postgresql://board:secret@host/board")
    read(decoder, honest())
    assert "REUSABLE_HOLDOUT_DATABASE" not in of_process(decoder).environ()
    assert of_process(decoder).rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert of_process(decoder).rlimit(psutil.RLIMIT_AS)[0] < 1 << 30


def test_a_process_that_does_not_start_is_a_failure_of_the_server(decoder, monkeypatch):
    monkeypatch.setattr(decoder_module, "_PROGRAM", "no.such.program")
    with pytest.raises(DecoderError, match="nothing was asked"):
        read(decoder, honest())


def test_it_ends_with_its_decoder(decoder):
    read(decoder, honest())
    process = of_process(decoder)
    decoder.close()
    assert not process.is_running()


def test_another_form_gets_another_process(decoder):
    read(decoder, honest())
    content = parquet(id=list(IDS), prediction=["no"] * ROWS)
    assert set(read(decoder, content, expected=CLASSES)) == {"no"}


@pytest.mark.parametrize(
    "answer",
    [
        {"dtype": "<f4"},
        {"dtype": "|O"},
        {"dtype": ["<f8"]},
        {"problems": "no list"},
        {"problems": [1]},
        {},
    ],
)
def test_an_answer_of_another_form_is_not_believed(decoder, take_over, answer):
    take_over(SCORES.form, (answer, [bytes(8 * ROWS)]))
    with pytest.raises(SubmissionError, match="within some seconds"):
        read(decoder, honest())
    assert decoder._running is None


def test_an_answer_that_fits_is_believed(decoder, take_over):
    take_over(SCORES.form, ({"dtype": "<f8"}, [bytes(8 * ROWS)]))
    assert read(decoder, honest()).tolist() == [0.0] * ROWS


def test_labels_outside_the_classes_are_not_believed(decoder, take_over):
    take_over(CLASSES.form, ({"dtype": "<i8"}, [b"\x07" * 8 * ROWS]))
    with pytest.raises(SubmissionError, match="within some seconds"):
        read(decoder, honest(), expected=CLASSES)


@LONG
def test_a_million_shuffled_rows_are_read_within_the_limits(decoder):
    rows = 1_000_000
    expected = Expected(
        ids=tuple(f"row-{row}" for row in range(rows)),
        rows=rows,
        id_column="id",
        columns=("prediction",),
        response="labels",
        classes=(0, 1),
    )
    rng = np.random.default_rng(0)
    order, votes = rng.permutation(rows), rng.integers(0, 2, rows)
    lines = "".join(f"row-{row},{vote}\n" for row, vote in zip(order.tolist(), votes.tolist(), strict=True))
    found = read(decoder, f"id,prediction\n{lines}".encode(), "votes.csv", expected)
    assert (found[order] == votes).all()
