"""Files that were made to break a reader: each is refused in words, and fills no memory."""

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pandas as pd
import pyarrow as pa
from cases import for_each
from integrations.evals.conftest import RECORDED
from reusable_holdout_evals import read_inspect, read_lm_eval, read_mlflow, read_scores
from reusable_holdout_evals.gate.tables import read_table
from reusable_holdout_evals.readers import archives

from reusable_holdout.errors import InputError

DEEP = "[" * 200_000
HEADER = {"status": "success", "eval": {"task": "t"}}


def sample(row="q1", epoch=1, value="C", **more):
    return {"id": row, "epoch": epoch, "scores": {"match": {"value": value}}, **more}


def archive(path, summaries, header=None, compression=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", compression) as made:
        made.writestr("summaries.json", summaries if isinstance(summaries, str) else json.dumps(summaries))
        made.writestr("header.json", json.dumps(HEADER | (header or {})))
    return path


# ---- archives


@for_each(
    ("content", "words"),
    [
        (b"", "no zip archive"),
        (b"PK\x03\x04", "no zip archive"),
        (b"PK\x05\x06" + 18 * b"\x00", "header.json and summaries.json"),  # an empty one
        (b"PK\x05\x06" + 18 * b"\xff", "no zip archive"),
        (bytes(range(256)) * 100, "no zip archive"),
        *(((RECORDED / "several.eval").read_bytes()[:-cut], "no zip archive") for cut in (1, 100, 5_000)),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_file_that_is_no_whole_archive_is_refused(tmp_path, refused, content, words):
    path = tmp_path / "a.eval"
    path.write_bytes(content)
    assert words in refused(read_inspect, path)


@for_each("damage", range(0, 2_000, 97))
def test_a_damaged_archive_is_refused_or_read_as_it_was(tmp_path, damage):
    """Whatever byte is wrong: no other exception, and no other scores, for members have checksums."""
    content = bytearray((RECORDED / "plain.eval").read_bytes())
    content[len(content) - 1 - damage] ^= 0x5A
    path = tmp_path / "a.eval"
    path.write_bytes(bytes(content))
    try:
        table = read_inspect(path)
    except InputError:
        return
    assert np.array_equal(table.scores, read_inspect(RECORDED / "plain.eval").scores)


def test_a_member_that_says_it_is_larger_than_the_bound_is_not_unpacked(tmp_path, refused, monkeypatch):
    path = archive(tmp_path / "a.eval", [sample()])
    monkeypatch.setattr(archives, "MOST_BYTES", 10)
    assert "at most 0 GiB unpacked; it has more" in refused(read_inspect, path)


def altered(path, mark, offset, change):
    """Change bytes after a mark of a zip file."""
    content = bytearray(path.read_bytes())
    place = content.index(mark) + offset
    content[place : place + len(change)] = change
    path.write_bytes(bytes(content))


def test_a_bomb_is_unpacked_no_further_than_it_says(tmp_path, refused):
    """Summaries that unpack to 256 MiB, and say that they have 100 bytes."""
    path, packed = tmp_path / "a.eval", pa.compress(b" " * (1 << 28), codec="zstd", asbytes=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as made:
        made.writestr("summaries.json", packed)
        made.writestr("header.json", json.dumps(HEADER))
    altered(path, b"PK\x01\x02", 10, struct.pack("<H", 93))  # the method, in the directory
    altered(path, b"PK\x01\x02", 24, struct.pack("<L", 100))  # the size unpacked
    tracemalloc.start()
    assert "its content does not match the archive's directory" in refused(read_inspect, path)
    assert tracemalloc.get_traced_memory()[1] < 100 << 20
    tracemalloc.stop()


def test_an_encrypted_member_is_refused(tmp_path, refused):
    path = archive(tmp_path / "a.eval", [sample()])
    altered(path, b"PK\x03\x04", 6, b"\x01")
    altered(path, b"PK\x01\x02", 8, b"\x01")
    assert "cannot be unpacked (RuntimeError)" in refused(read_inspect, path)


@for_each("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_older_logs_are_packed_otherwise(tmp_path, compression):
    path = archive(tmp_path / "a.eval", [sample()], compression=compression)
    assert read_inspect(path).scores.tolist() == [1.0]


def test_members_are_read_by_their_checksum_in_one_frame_or_several():
    packed = b"".join(pa.compress(part, codec="zstd", asbytes=True) for part in (b"[1", b",2]"))
    assert archives._zstandard(io.BytesIO(packed), "a log").read() == b"[1,2]"
    with zipfile.ZipFile(RECORDED / "plain.eval") as whole, archives.Archive(RECORDED / "plain.eval") as ours:
        assert zlib.crc32(ours.read("summaries.json")) == whole.getinfo("summaries.json").CRC


# ---- JSON


@for_each(
    ("summaries", "words"),
    [
        (DEEP, "nested too deeply"),
        ("[" + '{"id":' * 200_000, "nested too deeply"),
        ("[{", "broken at character 2"),
        ("[{} {}]", "broken at character 4"),
        ("{}", "lacks the evaluation or its samples"),
        ("", "broken at character 0"),
        ("[]", "it holds none"),
        ("[3]", "must be a JSON object"),
        ('[{"id": ' + "9" * 5_000 + "}]", "must be JSON; it is broken"),
        ('[{"id": "a"} , {"id": "b"}]', "it holds none"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_summaries_that_are_none_are_refused(tmp_path, refused, summaries, words):
    assert words in refused(read_inspect, archive(tmp_path / "a.eval", summaries))


@for_each(
    ("read", "name", "text", "words"),
    [
        (read_inspect, "a.json", '{"status": "success", "eval": ' + DEEP, "nested too deeply"),
        (read_lm_eval, "samples_a.jsonl", DEEP, "line 1 of"),
        (read_lm_eval, "samples_a.jsonl", '{"doc_id": 0, "acc": 1}\n\udcff\udcfe', "must be text in UTF-8"),
        (read_scores, "a.json", '{"id": ["a"]}', "a list of objects"),
        (
            read_scores,
            "a.json",
            '[{"id": "a"}, 3]',
            "a list of objects, one for each row, or of plain values",
        ),
        (read_scores, "a.json", "[[1, 2]]", "a list of objects"),
        (read_scores, "a.json", "[]", "must be"),
        (read_scores, "a.json", '[{"id": "a", "score": 1}', "check that the file is complete"),
        (read_scores, "a.jsonl", '{"id": "a"}\n[1]', "line 2 of"),
        (read_scores, "a.jsonl", '{"id": "a"}\n{"id"', "line 2 of"),
        (read_scores, "a.jsonl", "id,score\na,1\n", "line 1 of"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_files_of_json_that_are_none_are_refused(tmp_path, refused, read, name, text, words):
    path = tmp_path / name
    path.write_bytes(text.encode(errors="surrogateescape"))
    assert words in refused(read, path)


@for_each("second", [' [{"id": "q2", "score": 0}]', " and more", "]"])
def test_json_that_goes_on_after_its_end_is_refused(tmp_path, refused, second):
    """The fault: of two lists put together in one file, the second was left out without a word."""
    rows, log = '[{"id": "q1", "score": 1}]', json.dumps(HEADER | {"samples": [sample()]})
    for read, name, text in (
        (read_scores, "scores.json", rows),
        (read_scores, "scores.jsonl", rows[1:-1]),
        (read_inspect, "log.json", log),
    ):
        (tmp_path / name).write_text(text + second)
        assert "it is broken at character" in refused(read, tmp_path / name)
    summaries = json.dumps([sample()]) + second
    assert "it is broken at character" in refused(read_inspect, archive(tmp_path / "log.eval", summaries))
    (tmp_path / "scores.json").write_text(rows + " \n\t\r\n")
    assert read_scores(tmp_path / "scores.json").ids == ("q1",)


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
        ([sample("\ud800")], "a broken character"),
        ([sample(epoch="1")], "epochs must be whole numbers"),
        ([sample(epoch=True)], "epochs must be whole numbers"),
        ([sample(), sample("q2"), sample(epoch=2)], "some have 2; these have fewer: q2"),
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
def test_samples_that_do_not_fit_are_refused_by_name(tmp_path, refused, samples, words):
    assert words in refused(read_inspect, archive(tmp_path / "a.eval", samples))


@for_each(
    "header", [{"eval": None}, {"status": None}, {"status": "started"}, {"invalidated": True}, {"eval": []}]
)
def test_headers_of_no_finished_run_are_refused(tmp_path, refused, header):
    assert "must be" in refused(read_inspect, archive(tmp_path / "a.eval", [sample()], header))


@for_each("results", [None, [], {"scores": 3}, {"scores": [3, {"scorer": "match", "metrics": [1]}]}])
def test_results_of_another_shape_are_passed_over(tmp_path, results):
    failed = sample("q2", value="I", error="too slow")  # scored all the same: it counts as in Inspect
    table = read_inspect(archive(tmp_path / "a.eval", [sample(), failed], {"results": results}))
    assert (table.groups, table.scores.tolist()) == (None, [1.0, 0.0])


def test_metrics_of_two_clusters_need_one_named(tmp_path, refused):
    metrics = {name: {"params": {"cluster": name}} for name in ("repo", "user")}
    results = {"scores": [{"name": "match", "scorer": "match", "metrics": metrics}]}
    path = archive(tmp_path / "a.eval", [sample(metadata={"repo": 1, "user": "u"})], {"results": results})
    assert "are clustered by repo, user" in refused(read_inspect, path)
    assert read_inspect(path, groups="repo").groups == ("1",)


@for_each("value", [None, "", [], {}, 1.5, "x" * 1_023, "Key removed from summary (> 1k)"], ids=str)
def test_groups_that_are_none_or_were_cut_are_refused(tmp_path, refused, value):
    path = archive(tmp_path / "a.eval", [sample(metadata={"repo": value})])
    assert "group" in refused(read_inspect, path, groups="repo")


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
def test_tables_that_do_not_fit_are_refused_by_name(refused, columns, words):
    assert words in refused(read_scores, pd.DataFrame(columns))


@for_each("source", [None, 3, [0.5], {"id": ["a"]}, np.zeros(3)], ids=str)
def test_a_source_that_is_no_table_is_refused(refused, source):
    assert "must come in a CSV, Parquet or JSON file, or in a table" in refused(read_scores, source)


@for_each("missing", [float("nan"), float("inf"), "0", True, [0]], ids=str)
def test_wrong_options_are_refused(refused, missing):
    assert "missing must be a number" in refused(read_scores, pd.DataFrame(), missing=missing)
    assert "scorers" in refused(read_inspect, RECORDED / "plain.eval", scorers="match")
    deep = pd.DataFrame({"request": [DEEP], "assessments": [[]]})
    assert "nested too deeply" in refused(read_mlflow, deep, assessment="a")


@for_each("ending", ["gz", "zip"])
def test_packed_csv_is_not_unpacked(tmp_path, refused, ending):
    """A small file could fill the memory."""
    path = tmp_path / f"scores.csv.{ending}"
    path.write_bytes(gzip.compress(b"id,score\nq1,1\n"))
    if ending == "zip":
        with zipfile.ZipFile(path, "w") as made:
            made.writestr("scores.csv", "id,score\nq1,1\n")
    assert "must be a CSV file" in refused(read_scores, path)
    assert "must be a CSV file" in refused(read_table, path, id_column="id")
