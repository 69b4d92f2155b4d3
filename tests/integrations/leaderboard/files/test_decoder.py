"""Files that lie about themselves: refused with a clear error, in little memory, and the next one is read."""

import io
import json
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
    """A column of one long text, which a dictionary holds once."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array(["x" * length]))


def big_csv(expected, value="0.5"):
    rows = "".join(f"{one},{value:<600}\n" for one in expected.ids)
    return f"{','.join(expected.header())}\n{rows}".encode()


@pytest.fixture
def take_over(decoder, monkeypatch):
    """Have the process that reads files by this form be another, which takes all that comes and says this."""

    def begin(form, said):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        other = subprocess.Popen(["/bin/sh", "-c", "exec cat > /dev/null"], **pipes)
        decoder._running = decoder_module._Process(other, form, 30.0)
        monkeypatch.setattr(decoder_module, "received", lambda *_, **__: said)

    return begin


def of_process(decoder):
    return psutil.Process(decoder._running.process.pid)


def test_what_the_process_reads_is_what_is_read_here(decoder):
    order = np.random.default_rng(0).permutation(ROWS)
    for content, name in ((honest(order), "a.parquet"), (big_csv(SCORES), "b.csv")):
        assert len(content) > MEGABYTE or name == "a.parquet"
        assert (decoder.decode(content, name, SCORES) == parse_submission(content, name, SCORES)).all()
    found = decoder.decode(big_csv(CLASSES, "yes"), "c.csv", CLASSES)
    assert (found == parse_submission(big_csv(CLASSES, "yes"), "c.csv", CLASSES)).all()
    assert found.dtype.kind == "U"


def test_probabilities_and_rows_without_ids_come_back_in_their_shape(decoder):
    expected = Expected(
        ids=None, rows=3, id_column=None, columns=("x", "y"), response="probabilities", classes=(0, 1)
    )
    content = parquet(x=[0.25, 0.5, 1.0], y=[0.75, 0.5, 0.0])
    assert decoder.decode(content, "p.parquet", expected).tolist() == [[0.25, 0.75], [0.5, 0.5], [1, 0]]


def test_small_csv_files_start_no_process(decoder):
    content = ("id,score\n" + "".join(f"{one},0\n" for one in IDS)).encode()
    assert decoder.decode(content, "x.csv", SCORES).tolist() == [0.0] * ROWS
    assert decoder._running is None


def test_a_file_that_does_not_fit_says_why_and_ends_nothing(decoder):
    with pytest.raises(SubmissionError, match="1 id missing: 'r1999'"):
        decoder.decode(parquet(id=IDS[:-1], score=[0.5] * (ROWS - 1)), "x.parquet", SCORES)
    number = of_process(decoder).pid
    decoder.decode(honest(), "x.parquet", SCORES)
    assert of_process(decoder).pid == number


def test_a_small_file_that_unpacks_to_gigabytes_is_refused_and_the_next_one_is_read(decoder):
    content = parquet(id=list(IDS), score=repeated(1 << 20))
    assert len(content) < 51_000
    before = psutil.Process().memory_info().rss
    with pytest.raises(SubmissionError, match="this one takes more"):
        decoder.decode(content, "x.parquet", SCORES)
    assert psutil.Process().memory_info().rss - before < 64 * MEGABYTE
    assert decoder.decode(honest(), "x.parquet", SCORES)[-1] == 1 - 1 / ROWS


def test_nested_columns_are_refused_before_they_are_read(decoder):
    content = parquet(id=list(IDS), score=[[0.0] * 1_000] * ROWS)
    with pytest.raises(SubmissionError, match="columns must hold text or numbers"):
        decoder.decode(content, "x.parquet", SCORES)


@pytest.mark.parametrize(
    ("begins", "kind"),
    [(b"PK\x03\x04", "zip"), (b"\x1f\x8b", "gzip"), (b"BZh9", "bzip2"), (b"\xfd7zXZ", "xz")],
)
def test_packed_files_are_to_be_unpacked_by_who_sends_them(decoder, begins, kind):
    with pytest.raises(SubmissionError, match=f"this one is packed \\({kind}\\); unpack it"):
        decoder.decode(begins + b"x" * 1_000, "x.csv", SCORES)


def test_each_file_has_some_seconds_of_the_processor(decoder):
    for _ in range(2):
        decoder.decode(honest(), "x.parquet", SCORES)
        used = sum(of_process(decoder).cpu_times()[:2])
        soft, _ = of_process(decoder).rlimit(psutil.RLIMIT_CPU)
        assert soft <= used + 3 + ROWS / 500_000 + 1


def test_a_file_that_takes_too_long_on_the_clock_is_refused(decoder, monkeypatch):
    decoder.decode(honest(), "x.parquet", SCORES)
    os.kill(of_process(decoder).pid, signal.SIGSTOP)  # it will never answer
    with monkeypatch.context() as patch:
        patch.setattr(decoder_module, "_WAIT", 0)
        with pytest.raises(SubmissionError, match="within some seconds"):
            decoder.decode(honest(), "x.parquet", SCORES)
    assert len(decoder.decode(honest(), "x.parquet", SCORES)) == ROWS


def test_the_process_knows_no_secret_and_leaves_no_core(decoder, monkeypatch):
    monkeypatch.setenv("REUSABLE_HOLDOUT_DATABASE", "postgresql://board:secret@host/board")
    decoder.decode(honest(), "x.parquet", SCORES)
    assert "REUSABLE_HOLDOUT_DATABASE" not in of_process(decoder).environ()
    assert of_process(decoder).rlimit(psutil.RLIMIT_CORE) == (0, 0)
    assert of_process(decoder).rlimit(psutil.RLIMIT_AS)[0] < 1 << 30


def test_a_process_that_cannot_be_started_is_the_servers_failure_and_not_the_files(decoder, monkeypatch):
    monkeypatch.setattr(decoder_module, "_PROGRAM", "no.such.program")
    with pytest.raises(DecoderError, match="nothing was asked"):
        decoder.decode(honest(), "x.parquet", SCORES)


def test_it_ends_with_its_decoder(decoder):
    decoder.decode(honest(), "x.parquet", SCORES)
    process = of_process(decoder)
    decoder.close()
    assert not process.is_running()


def test_another_form_gets_another_process(decoder):
    decoder.decode(honest(), "x.parquet", SCORES)
    content = parquet(id=list(IDS), prediction=["no"] * ROWS)
    assert set(decoder.decode(content, "x.parquet", CLASSES)) == {"no"}


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
def test_what_a_process_that_was_taken_over_says_is_not_believed(decoder, take_over, answer):
    take_over(SCORES.form, (answer, [bytes(8 * ROWS)]))
    with pytest.raises(SubmissionError, match="within some seconds"):
        decoder.decode(honest(), "x.parquet", SCORES)
    assert decoder._running is None


def test_what_a_process_says_is_believed_if_it_fits(decoder, take_over):
    take_over(SCORES.form, ({"dtype": "<f8"}, [bytes(8 * ROWS)]))
    assert decoder.decode(honest(), "x.parquet", SCORES).tolist() == [0.0] * ROWS


def test_labels_outside_the_classes_are_not_believed(decoder, take_over):
    take_over(CLASSES.form, ({"dtype": "<i8"}, [b"\x07" * 8 * ROWS]))
    with pytest.raises(SubmissionError, match="within some seconds"):
        decoder.decode(honest(), "x.parquet", CLASSES)


# ---- JSON


def question(value, *, count=1, **more):
    if count == 1:
        return json.dumps({"predictions": [value] * ROWS, **more}).encode()
    return json.dumps({"batch": [[value] * ROWS] * count, **more}).encode()


@pytest.mark.parametrize("value", [0, 0.25, [0.25]])
def test_large_questions_are_read_elsewhere_and_small_ones_here_alike(decoder, value):
    small, large = question(value, prior=0.5, name="mine"), question(value, count=300, anew=True)
    assert len(small) < MEGABYTE < len(large)
    asked = decoder.question(small, SCORES)
    assert decoder._running is None
    assert (asked.several, asked.anew, asked.priors, asked.names) == (False, False, [0.5], ["mine"])
    assert (asked.values[0] == np.array([value] * ROWS)).all()
    asked = decoder.question(large, SCORES)
    assert (asked.several, asked.anew, asked.priors, asked.names) == (True, True, [None] * 300, [""] * 300)
    assert (asked.values == np.array([[value] * ROWS] * 300)).all()


def test_labels_as_text_become_places_among_the_classes(decoder):
    for count in (1, 300):
        asked = decoder.question(question("yes", count=count), CLASSES)
        assert asked.coded
        assert set(asked.values.ravel()) == {1}
    with pytest.raises(SubmissionError, match="must be one of 'no', 'yes'; 'maybe' came"):
        decoder.question(question("maybe", count=300), CLASSES)


@pytest.mark.parametrize(
    "one",
    [
        b"[],",
        b"{},",
        *(pytest.param(one, marks=LONG) for one in [b"[[]],", b'"x",', b'0,"",', b"true,null,"]),
    ],
)
def test_json_that_unpacks_to_gigabytes_is_refused_in_little_memory(decoder, one):
    inside = one * ((SCORES.max_bytes - 100) // len(one))
    content = b'{"predictions": [' + inside[:-1] + b"]}"
    before = psutil.Process().memory_info().rss
    with pytest.raises(SubmissionError):
        decoder.question(content, SCORES)
    assert psutil.Process().memory_info().rss - before < 64 * MEGABYTE


@pytest.mark.parametrize(
    "said",
    [
        ({"dtype": "<f8"}, [bytes(8 * ROWS), b'{"priors": [null], "names": []}']),
        ({"dtype": "<f8"}, [bytes(8), b'{"priors": [null], "names": [""]}']),
        ({"dtype": "<f8", "coded": True}, [bytes(8 * ROWS), b'{"priors": [null], "names": [""]}']),
        ({"dtype": "|O"}, [bytes(8 * ROWS), b'{"priors": [null], "names": [""]}']),
        ({"dtype": "<f8"}, [bytes(8 * ROWS), b'{"priors": ["x"], "names": [""]}']),
    ],
)
def test_questions_of_a_process_that_was_taken_over_are_not_believed(decoder, take_over, said):
    take_over(SCORES.form, said)
    with pytest.raises(SubmissionError, match="within some seconds"):
        decoder.question(question(0, count=300), SCORES)
    assert decoder._running is None


@LONG
def test_a_million_shuffled_rows_of_any_names_are_read_in_the_memory_that_there_is(decoder):
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
    found = decoder.decode(f"id,prediction\n{lines}".encode(), "votes.csv", expected)
    assert (found[order] == votes).all()
