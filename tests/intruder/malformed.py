"""Malformed messages."""

import json
import struct

from intruder.asking import frame, question
from intruder.case import CASE

NUMBERS = [
    *("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" + 5_000 * "0", "9" * 39, "2", "-0.5", "[0.5]"),
    *("{}", '"0.5"', "true", "0x1", "1_0", "null", "[[[[0.5]]]]", '"\\ud800"'),
]
HEADS = {
    "no JSON": b"hello",
    "a list": b"[]",
    "a number": b"1",
    "null": b"null",
    "nothing": b"",
    "half an object": b'{"ask": ',
    "two objects": b'{"ask":"status"}{"ask":"status"}',
    "no UTF-8": b'{"ask": "\xff\xfe"}',
    "UTF-16": '{"ask":"status"}'.encode("utf-16"),
    "a pickle": b"\x80\x04\x95\x1a\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94.",
    "a mark before it": b"\xef\xbb\xbf{}",
    "zeros": bytes(100),
    "a request of HTTP": b"GET / HTTP/1.1\r\n\r\n",
    "an entity": b"<!DOCTYPE x>",
    "an object of Python": b"{'ask': 'status'}",
    "a comment": b'{"ask": "status" /* */}',
}
ASKS = [
    *(1, None, [], {}, True, "", "STATUS", "evaluate ", "evaluate\0"),
    *("__class__", "_about", "answer", "guard"),
]
ARRAYS = {
    "objects": ([["|O", [1]]], 8),
    "dates": ([["<M8[s]", [1]]], 8),
    "text": ([["<U4", [1]]], 16),
    "void": ([["|V8", [1]]], 8),
    "big endian": ([[">f8", [1]]], 8),
    "a record": ([["i4,f8", [1]]], 12),
    "no length": ([["<f8", []]], 8),
    "length 0": ([["<f8", [0]]], 0),
    "length -1": ([["<f8", [-1]]], 0),
    "a huge length": ([["<f8", [2**31 - 1, 2**31 - 1]]], 0),
    "length 2**64": ([["<f8", [2**64]]], 0),
    "a length of 1.0": ([["<f8", [1.0]]], 8),
    "true as a length": ([["<f8", [True]]], 8),
    "four axes": ([["<f8", [1, 1, 1, 1]]], 8),
    "longer than said": ([["<f8", [1]]], 16),
    "no list": ("x", 0),
    "a flat list": (["<f8", 1], 8),
    "too many": ([["|u1", [1]]] * 5_000, 5_000),
}
LENGTHS = {
    "a length of 4 GB": (2**32 - 1, 0), "a body of 4 GB": (2, 2**32 - 1), "both": (2**32 - 1,) * 2,
    "a longer head": (1_000, 0), "a longer body": (2, 1_000),
}  # fmt: skip


def with_text(name, text):
    return frame(json.dumps(question(**{name: "@"})).replace('"@"', text).encode())


def array(described, body, **more):
    return frame({"ask": "evaluate", "prior": 0.5, "arrays": described, **more}, body)


def predictions():
    """Yield malformed predictions."""
    rows = [0, 1] * (CASE.rows // 2)
    yield from {
        "none": [],
        "one row": [[0]],
        "a row less": [rows[:-1]],
        "a row more": [[*rows, 0]],
        "no list": 7,
        "flat": rows,
        "text": ["0" * CASE.rows],
        "an object": [{"0": 1}],
        "null": [None] * 3,
        "a stranger": [[*rows[:-1], 7]],
        "half": [[0.5] * CASE.rows],
        "huge": [[*rows[:-1], 10**30]],
        "texts": [["0"] * CASE.rows],
        "mixed": [[*rows[:-1], "x"]],
        "ragged": [[*rows[:-1], [0, 1]]],
        "nulls": [[None] * CASE.rows],
        "two": [rows, rows],
        "a path": ["/etc/passwd"],
    }.items()


def arrays():
    """Yield malformed arrays, and arrays that do not fit."""
    rows, floats = CASE.rows, struct.Struct("<d").pack
    yield from (
        (f"array: {name}", array(described, bytes(size))) for name, (described, size) in ARRAYS.items()
    )
    for name, shape, body in (
        ("shorter than said", [rows], bytes(8)),
        ("NaN", [rows], floats(float("nan")) * rows),
        ("infinity", [rows], floats(float("inf")) * rows),
        ("of another shape", [1, rows], bytes(8 * rows)),
    ):
        yield f"array: {name}", array([["<f8", shape]], body)
    yield "codes beyond the classes", array([["|u1", [rows]]], b"\xff" * rows, codes=True)
    yield "codes that are numbers", array([["<f8", [rows]]], bytes(8 * rows), codes=True)
    yield "codes that are signed", array([["<i8", [rows]]], b"\xff" * 8 * rows, codes=True)
    yield "codes: yes", array([["|u1", [rows]]], bytes(rows), codes="yes")


def malformed():
    yield from ((f"prior {one[:12]}", with_text("prior", one)) for one in NUMBERS)
    for one in ("NaN", "1e999", '"1"', "[]", "-1"):
        yield f"tolerance {one[:12]}", with_text("tolerance", one)
    for name, one in predictions():
        yield f"predictions: {name}", frame(question(predictions=one))
    yield "predictions: NaN", with_text("predictions", "[[NaN]]")
    for depth in (9, 100, 10_000, 200_000):
        yield f"predictions {depth} deep", with_text("predictions", "[" * depth + "]" * depth)
        yield f"an object {depth} deep", frame(b'{"ask":' * depth + b"1" + b"}" * depth)
    yield "a key twice", frame(b'{"ask": "status", "ask": "evaluate"}')
    yield from ((f"head: {name}", frame(text)) for name, text in HEADS.items())
    yield from ((f"ask {one!r}", frame({"ask": one})) for one in ASKS)
    yield from arrays()
    yield from ((f"frame: {name}", struct.pack(">II", *one) + b"{}") for name, one in LENGTHS.items())
    yield from ((f"frame: {cut} bytes of one", frame(question())[:cut]) for cut in (1, 4, 7, 8, 9, 20))
    for one in (-1, 1.5, "1", "NoneType", 2**70, [1], True):
        yield f"history after {one!r}", frame({"ask": "history", "after": one})
