"""Files that were made to break a reader: each is refused in words, and fills no memory."""

import bz2
import gzip
import io
import json
import lzma
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from cases import for_each
from reusable_holdout_evals import read_inspect, read_lm_eval, read_mlflow, read_scores
from reusable_holdout_evals.gate import read_table
from reusable_holdout_evals.readers import archives

from reusable_holdout.errors import InputError

RECORDED = Path(__file__).parent / "recorded"
DEEP = "[" * 200_000
HEADER = {"status": "success", "eval": {"task": "t"}}


def sample(row="q1", epoch=1, value="C", **more):
    return {"id": row, "epoch": epoch, "scores": {"match": {"value": value}}, **more}


def archive(path, summaries, header=None, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as made:
        made.writestr("summaries.json", summaries if isinstance(summaries, str) else json.dumps(summaries))
        made.writestr("header.json", json.dumps(HEADER | (header or {})))
    return path


def refused(read, *arguments, **options):
    with pytest.raises(InputError) as caught:
        read(*arguments, **options)
    words = str(caught.value)
    assert len(words) < 1_000
    assert "\n" not in words
    return words


# ---- archives


@for_each(
    ("content", "words"),
    [
        (b"", "no zip archive"),
        (b"PK\x03\x04", "no zip archive"),
        (b"PK\x05\x06" + 18 * b"\x00", "header.json and summaries.json"),  # an empty one
        (b"PK\x05\x06" + 18 * b"\xff", "no zip archive"),
        (bytes(range(256)) * 100, "no zip archive"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path, content, words):
    path = tmp_path / "a.eval"
    path.write_bytes(content)
    assert words in refused(read_inspect, path)


@for_each("damage", range(0, 2_000, 97))
def test_a_damaged_archive_is_refused_or_read_as_it_was(tmp_path, damage):
    """Whatever byte is wrong: no other exception, and no other scores, for members have checksums."""
    content = bytearray((RECORDED / "plain.eval").read_bytes())
    place = len(content) - 1 - damage
    content[place] ^= 0x5A
    path = tmp_path / "a.eval"
    path.write_bytes(bytes(content))
    try:
        table = read_inspect(path)
    except InputError:
        return
    assert np.array_equal(table.scores, read_inspect(RECORDED / "plain.eval").scores)


@for_each("cut", [0.1, 0.5, 0.9, 0.999])
def test_an_archive_that_is_cut_off_is_refused(tmp_path, cut):
    content = (RECORDED / "several.eval").read_bytes()
    path = tmp_path / "a.eval"
    path.write_bytes(content[: int(len(content) * cut)])
    assert "no zip archive" in refused(read_inspect, path)


def test_a_member_that_says_it_is_larger_than_the_bound_is_not_unpacked(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.eval", [sample()])
    monkeypatch.setattr(archives, "MOST_BYTES", 10)
    assert "at most 0 GiB unpacked; it has more" in refused(read_inspect, path)


def _zstd_bomb(path, *, says):
    """An archive whose summaries unpack to 256 MiB and say that they have a few bytes."""
    packed = pa.compress(b" " * (1 << 28), codec="zstd", asbytes=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        made.writestr("summaries.json", packed)
        made.writestr("header.json", json.dumps(HEADER))
    content = bytearray(path.read_bytes())
    place = content.index(b"PK\x01\x02")  # its line in the directory: method, and size unpacked
    content[place + 10 : place + 12] = struct.pack("<H", 93)
    content[place + 24 : place + 28] = struct.pack("<L", says)
    path.write_bytes(bytes(content))
    return path


_MEASURED = """
import resource, sys
from reusable_holdout.errors import InputError
from reusable_holdout_evals import read_inspect
try:
    import pandas, pyarrow, zipfile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_inspect(sys.argv[1])
except InputError as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def test_a_bomb_is_unpacked_no_further_than_it_says(tmp_path):
    path = _zstd_bomb(tmp_path / "a.eval", says=100)
    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    words, grown = done.stdout.splitlines()
    assert "its content is not what the archive's directory says" in words
    assert int(grown) < 100  # MiB


def test_an_encrypted_member_is_refused(tmp_path):
    path = archive(tmp_path / "a.eval", [sample()])
    content = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + offset] |= 1
    path.write_bytes(bytes(content))
    assert "cannot be unpacked (RuntimeError)" in refused(read_inspect, path)


@for_each("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_older_logs_are_packed_otherwise(tmp_path, compression):
    path = archive(tmp_path / "a.eval", [sample()], compression=compression)
    assert read_inspect(path).scores.tolist() == [1.0]


def test_zstandard_of_several_frames_is_one_member():
    packed = b"".join(pa.compress(part, codec="zstd", asbytes=True) for part in (b"[1", b",2]"))
    assert archives._zstandard(io.BytesIO(packed), "a log").read() == b"[1,2]"


# ---- JSON


@for_each(
    ("summaries", "words"),
    [
        (DEEP, "nested too deeply"),
        ("[" + '{"id":' * 200_000, "nested too deeply"),
        ("[{", "broken at character 1"),
        ("[{} {}]", "there must be ,"),
        ("{}", "there must be ["),
        ("", "there must be ["),
        ("[]", "it holds none"),
        ("[3]", "must be a JSON object"),
        ('[{"id": ' + "9" * 5_000 + "}]", "broken at character 1"),
        ('[{"id": "a"} , {"id": "b"}]', "it holds none"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_summaries_that_are_none_are_refused(tmp_path, summaries, words):
    assert words in refused(read_inspect, archive(tmp_path / "a.eval", summaries))


def test_deep_json_is_refused_everywhere(tmp_path):
    log = tmp_path / "a.json"
    log.write_text('{"status": "success", "eval": ' + DEEP)
    assert "nested too deeply" in refused(read_inspect, log)
    lines = tmp_path / "samples_a.jsonl"
    lines.write_text(DEEP)
    assert "line 1 of" in refused(read_lm_eval, lines)
    frame = pd.DataFrame({"request": [DEEP], "assessments": [[]]})
    assert "nested too deeply" in refused(read_mlflow, frame, assessment="a")


def test_what_is_no_utf8_is_refused(tmp_path):
    lines = tmp_path / "samples_a.jsonl"
    lines.write_bytes(b'{"doc_id": 0, "acc": 1}\n\xff\xfe')
    assert "must be text in UTF-8" in refused(read_lm_eval, lines)


# ---- samples


@for_each(
    ("samples", "words"),
    [
        ([sample(), sample()], "has q1 twice in repeat"),
        ([sample(1), sample("1", 2)], "has 1 as a number and as text"),
        ([sample(None)], "has none; name every row"),
        ([sample(True)], "has bool; name"),
        ([sample(1.5)], "has float; name"),
        ([sample([1])], "has list; name"),
        ([sample("")], "1 to 1,000 characters"),
        ([sample("   ")], "1 to 1,000 characters"),
        ([sample("x" * 1_001)], "has one of 1,001"),
        ([sample("\ud800")], "half of a character"),
        ([sample(epoch="1")], "epochs must be whole numbers"),
        ([sample(epoch=True)], "epochs must be whole numbers"),
        ([sample(), sample("q2"), sample(epoch=2)], "the most are 2, and fewer have q2"),
        ([sample(value="maybe")], "got the text maybe"),
        ([sample(value="a\n::set-output name=x::y")], r"'a\n::set-output name=x::y'"),
        ([sample(value=float("inf"))], "infinity"),
        ([sample(value=10**400)], "infinity, or a number too large"),
        ([sample(value="1e999")], "got the text 1e999"),
        ([sample(value="\uff11")], r"got the text '\uff11'"),
        ([sample(value="1_0")], "got the text 1_0"),
        ([sample(value=[1, 0])], "got a list"),
        ([sample(value={"a": [1]})], "has the keys a; name one"),
        ([sample(value=float("nan"))], "1 because it was not scored"),
        ([sample(value=None)], "has none for q1"),
        ([sample(metadata=[]), sample("q2", scores=[])], "has none for q2"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_samples_that_do_not_fit_are_refused_by_name(tmp_path, samples, words):
    assert words in refused(read_inspect, archive(tmp_path / "a.eval", samples))


@for_each(
    "header",
    [
        {"eval": None},
        {"status": None},
        {"status": "started"},
        {"invalidated": True},
        {"eval": []},
    ],
)
def test_headers_of_no_finished_run_are_refused(tmp_path, header):
    assert "must be" in refused(read_inspect, archive(tmp_path / "a.eval", [sample()], header))


@for_each("results", [None, [], {"scores": 3}, {"scores": [3, {"scorer": "match", "metrics": [1]}]}])
def test_results_of_another_shape_are_passed_over(tmp_path, results):
    assert read_inspect(archive(tmp_path / "a.eval", [sample()], {"results": results})).groups is None


def test_metrics_of_two_clusters_need_one_named(tmp_path):
    metrics = {name: {"params": {"cluster": name}} for name in ("repo", "user")}
    results = {"scores": [{"name": "match", "scorer": "match", "metrics": metrics}]}
    samples = [sample(metadata={"repo": 1, "user": "u"})]
    path = archive(tmp_path / "a.eval", samples, {"results": results})
    assert "are clustered by repo, user" in refused(read_inspect, path)
    assert read_inspect(path, groups="repo").groups == ("1",)


@for_each("value", [None, "", [], {}, 1.5, "x" * 1_023, "Key removed from summary (> 1k)"], ids=str)
def test_groups_that_are_none_or_were_cut_are_refused(tmp_path, value):
    path = archive(tmp_path / "a.eval", [sample(metadata={"repo": value})])
    assert "group" in refused(read_inspect, path, groups="repo")


def test_a_sample_that_failed_and_was_scored_counts_as_in_inspect(tmp_path):
    path = archive(tmp_path / "a.eval", [sample(error="too slow"), sample("q2", value="I")])
    assert read_inspect(path).scores.tolist() == [1.0, 0.0]


# ---- tables and options


@for_each(
    ("columns", "words"),
    [
        ({"id": ["a", "a"], "score": [1, 1]}, "has a twice in repeat score"),
        ({"id": ["a", None], "score": [1, 1]}, "row 2 has none"),
        ({"id": ["a", ""], "score": [1, 1]}, "row 2 has none"),
        ({"id": [1.0, 2.0], "score": [1, 1]}, "has float"),
        ({"id": [1, "1"], "score": [1, 1]}, "as a number and as text"),
        ({"id": ["a", "b"], "score": ["x", "y"]}, "got the text x"),
        ({"id": ["a", "b"], "score": [1, np.inf]}, "infinity"),
        ({"id": ["a", "b"], "score": [1 + 1j, 1]}, "got a complex"),
        ({"id": ["a", "b"], "score": pd.to_datetime(["2026-01-01"] * 2)}, "got a Timestamp"),
        ({"id": ["a", "b"], "score": [1, pd.NA]}, "has none for b"),
        ({"id": ["a", "a"], "repeat": [1, 1], "score": [1, 1]}, "has a twice in repeat 1"),
        ({"id": ["a", "b"], "score": [None, None]}, "has none for a, b"),
    ],
    ids=lambda value: str(value)[:60],
)
def test_tables_that_do_not_fit_are_refused_by_name(columns, words):
    assert words in refused(read_scores, pd.DataFrame(columns))


@for_each("missing", [float("nan"), float("inf"), "0", True, [0]], ids=str)
def test_what_stands_for_no_score_is_a_number(missing):
    assert "missing must be a number" in refused(read_scores, pd.DataFrame(), missing=missing)


@for_each("source", [None, 3, [0.5], {"id": ["a"]}, np.zeros(3)], ids=str)
def test_what_is_no_table_is_refused(source):
    assert "must come in a CSV, Parquet or JSON file, or in a table" in refused(read_scores, source)


def test_options_that_no_reader_takes_are_refused():
    assert "scorers" in refused(read_inspect, RECORDED / "plain.eval", scorers="match")


def test_the_checksum_is_that_of_zip():
    """The damaged files above rest on it."""
    with zipfile.ZipFile(RECORDED / "plain.eval") as whole:
        (info,) = (one for one in whole.infolist() if one.filename == "summaries.json")
    with archives.Archive(RECORDED / "plain.eval") as ours:
        assert zlib.crc32(ours.read("summaries.json")) == info.CRC


@pytest.mark.parametrize("second", [' [{"id": "q2", "score": 0}]', " and more", "]"])
def test_json_that_goes_on_after_its_end_is_refused(tmp_path, second):
    """The fault: of two lists put together in one file, the second was left out without a word."""
    rows = '[{"id": "q1", "score": 1}]'
    (tmp_path / "scores.json").write_text(rows + second)
    (tmp_path / "scores.jsonl").write_text(rows[1:-1] + second)
    log = json.dumps(HEADER | {"samples": [sample()]})
    (tmp_path / "log.json").write_text(log + second)
    assert "must end" in refused(read_scores, tmp_path / "scores.json")
    assert "must end" in refused(read_scores, tmp_path / "scores.jsonl")
    assert "must end" in refused(read_inspect, tmp_path / "log.json")
    assert "must end" in refused(
        read_inspect, archive(tmp_path / "log.eval", json.dumps([sample()]) + second)
    )
    (tmp_path / "scores.json").write_text(rows + " \n\t\r\n")
    assert read_scores(tmp_path / "scores.json").ids == ("q1",)


def test_packed_csv_is_unpacked_no_further_than_the_bound(tmp_path, monkeypatch):
    content = b"id,score\n" + b"".join(b"q%d,1\n" % row for row in range(100))
    packed = {"gz": gzip.compress(content), "bz2": bz2.compress(content), "xz": lzma.compress(content)}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("scores.csv", content)
    packed["zip"] = buffer.getvalue()
    for ending, found in packed.items():
        path = tmp_path / f"scores.csv.{ending}"
        path.write_bytes(found)
        assert len(read_scores(path).ids) == 100
        assert len(read_table(path, id_column="id").ids) == 100
    monkeypatch.setattr(archives, "MOST_BYTES", 100)
    for ending in packed:
        path = tmp_path / f"scores.csv.{ending}"
        assert "unpacked" in refused(read_scores, path)
        assert "unpacked" in refused(read_table, path, id_column="id")
