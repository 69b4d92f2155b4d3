"""Attempts by messages to a box."""

import json
from functools import partial

from intruder.asking import frame, question, refused
from intruder.case import CASE, report
from intruder.malformed import malformed

COMMANDS = (
    "on rotate open close gate ask measure check_predictions certificate subscribe plot price verify reset shutdown "
    "init run labels key seed __reduce__ __dict__ eval exec import"
)
SETTINGS = json.loads(
    """{
    "anew": true, "series": "other", "replan": true, "at_least": 0.1, "seed": 1, "queries": 1000000,
    "charges": 1000000, "guardrails": {}, "allow": ["final", "second budget"], "verdict_only": false, "ledger": "/tmp/x.db", "key": "00",
    "witness": false, "metric": "accuracy", "plan": {}, "board": "claims", "epoch": 2, "confidence": 0.01, "estimate": 1.0,
    "noise": 0, "exam": 0.5, "final": true, "kind": "reveal", "way": "reveal", "view": 1, "user": 0, "uid": 0, "token": "x",
    "__class__": "x"
    }"""
)
NAMES = [
    *("a\nb", "a\rb", "\x1b[2J\x1b[H", "\x1b]0;title\x07", "\x9b31m", "\x00", "a\tb", "\u202eabc", "\u200b"),
    *("\u2028", "\ud800", "\ufeff", "\U000e0041", "=1+1", '=HYPERLINK("http://x")', "+1", "-1+1", "@SUM(A1)"),
    *("=cmd|' /C calc'!A0", "x" * 201, "x" * 10**5, 7, ["x"], [], {}, True, 1.5),
]


def forbidden():
    rows = [[0, 1] * (CASE.rows // 2)]
    for way, stated in {"reveal": {"prior": 0.5}, "choose": {"prior": [0.5]}, "final": {}}.items():
        yield way, frame({"ask": way, "predictions": rows, **stated})
        likes = [way.upper(), f" {way}", f"{way}_predictions", f"{way}\u200b", f"evaluate;{way}"]
        for other in (*likes, [way], {"ask": way}):
            yield f"ask {other!r}", frame({"ask": other, "predictions": rows, "prior": 0.5})
    for way in COMMANDS.split():
        yield f"ask {way!r}", frame({"ask": way})
    weights = {"sample_weight": [1] + [0] * (CASE.rows - 1)}
    for name, one in (SETTINGS | weights).items():
        yield f"evaluate with {name}", frame(question(**{name: one}))


def names():
    for name in NAMES:
        yield f"name of {len(str(name))} like {str(name)[:20]!r}", frame(question(name=name))


def try_messages():
    for group, several in (("malformed", malformed()), ("forbidden", forbidden()), ("names", names())):
        report(group, ((name, partial(refused, message)) for name, message in several))
