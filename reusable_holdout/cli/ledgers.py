"""``reusable-holdout history``, ``plot``, ``report``, ``verify`` and ``witness``."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reusable_holdout.cli.command import add_documented, tell
from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import InputError
from reusable_holdout.guard import begin_witness, released, verify
from reusable_holdout.report import report_page

_EPOCH: dict[str, Any] = {"type": int, "help": "of the ledger's holdouts, from 1 (default the last)"}


def _add(*command: Any) -> Any:
    """Add a command about one ledger; its arguments are those of `add_documented`."""
    parser = add_documented(*command)
    parser.add_argument("ledger", help="SQLite file or URL")
    return parser


def add_history(commands: Any) -> None:
    """Add ``history``."""
    parser = _add(commands, _history, "history guard.db --json")
    parser.add_argument("--epoch", **_EPOCH)


def _history(options: argparse.Namespace) -> int:
    """Show everything a guard has released, in order. The holdout and its key are not needed."""
    found = released(options.ledger, epoch=options.epoch)
    history = found.history
    if found.mistake:
        print(f"mistaken: {found.mistake}", file=sys.stderr)
    if options.json:
        tell(json.loads(history.to_json(orient="records", date_format="iso")), as_json=True)
    elif len(history):
        print(_told_briefly(history).to_string(index=False, float_format="{:.4f}".format))
    else:
        print("nothing was asked yet")
    return 0


def _told_briefly(history: pd.DataFrame) -> pd.DataFrame:
    """Return the history without empty columns and without fractions of a second."""
    idle = [name for name in ("view", "name", "series", "paired") if not history[name].any()]
    return history.drop(columns=idle).assign(asked_at=history["asked_at"].dt.strftime("%Y-%m-%d %H:%M:%S"))


def add_report(commands: Any) -> None:
    """Add ``report``."""
    parser = _add(commands, _report, "report guard.db")
    text = "page to write (default: named as the ledger, such as guard.html)"
    parser.add_argument("--out", "--output", dest="out", type=Path, help=text)


def _report(options: argparse.Namespace) -> int:
    """Write one HTML file about a ledger, for people.

    It shows its verification, what is left of the budget, a table of all answers, and what an interval means. The
    holdout and its key are not needed, nor any other file. The exit status is 1 if the ledger is not sound.
    """
    ledger: str = options.ledger
    out: Path = options.out or Path(("guard" if "://" in ledger else Path(ledger).stem) + ".html")
    if out.resolve() == Path(ledger).resolve():
        raise InputError(f"the report must not overwrite the ledger; {out} is the ledger; name another file")
    page, verified = report_page(options.ledger)
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"a report must be writable at {out}; it is not ({error.strerror}); name another file"
        ) from None
    found = {"report": str(out), "sound": verified.sound}
    tell(found if options.json else f"wrote {out}", as_json=options.json)
    return 0 if verified.sound else 1


def add_verify(commands: Any) -> None:
    """Add ``verify``."""
    parser = _add(commands, _verify, "verify guard.db")
    parser.add_argument("--expected-head", help="seal noted earlier: finds rows that were cut off since")
    parser.add_argument("--witness", help="what remembers the ledger (default: the one that stands in it)")
    parser.add_argument(
        "--certificate",
        type=Path,
        help="frozen certificate of a deployed model: is it what this ledger answered?",
    )


def _verify(options: argparse.Namespace) -> int:
    """Recompute a ledger's hash chain, budget, thresholds and intervals.

    Offline, without the holdout or its key. The exit status is 1 if anything is wrong.
    """
    named = {name: getattr(options, name) for name in ("expected_head", "witness", "certificate")}
    found = verify(options.ledger, **named)
    tell({"sound": found.sound} | asdict(found) if options.json else found, as_json=options.json)
    return 0 if found.sound else 1


def add_witness(commands: Any) -> None:
    """Add ``witness``."""
    _add(commands, _witness, "witness guard.db")


def _witness(options: argparse.Namespace) -> int:
    """Let the witness of a ledger begin anew, if it was lost.

    Only where you are sure that this is the newest copy: what was asked of a newer one is forgotten, and its budget
    could be spent again.
    """
    place = begin_witness(options.ledger)
    words = f"{place} remembers the ledger from now on"
    tell({"witness": place} if options.json else words, as_json=options.json)
    return 0
