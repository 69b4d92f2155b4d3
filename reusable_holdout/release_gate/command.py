"""What the commands ``gate-init`` and ``gate`` do: they end with a status, whatever happens.

Python's own status for a crash is 1, which here means "rejected", so nothing but an interrupt leaves as an exception.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from reusable_holdout.errors import Halted, HoldoutError
from reusable_holdout.release_gate.gate import ask_gate, make_gate, open_gate

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

__all__ = ["BAD_INPUT", "Outcome", "run_gate", "run_gate_init"]

_STATUS = {"accepted": 0, "rejected": 1, "halted": 2}
BAD_INPUT = 3
"""Status of whatever has no verdict."""

_PLAN = ("queries", "charges", "tolerance", "spread", "confidence", "vacuous")


class Outcome(NamedTuple):
    """How a command ended.

    Attributes
    ----------
    status : int
        Exit status.
    text : str
        For the output.
    problem : str
        For the error output.
    """

    status: int
    text: str = ""
    problem: str = ""


def run_gate_init(options: argparse.Namespace) -> Outcome:
    """Make a gate as the command line says; status 0 or 3."""

    def make() -> Outcome:
        stated = {name: getattr(options, name) for name in _PLAN}
        gate = make_gate(
            options.ledger,
            options.labels,
            id_column=options.id,
            metric=options.metric,
            bounds=options.bounds,
            key=options.key,
            witness=options.witness,
            **{name: value for name, value in stated.items() if value is not None},
        )
        gate.guard.close()
        return Outcome(0, json.dumps(gate.plan.record(), indent=2) if options.json else str(gate.plan))

    return _ended(make)


def run_gate(options: argparse.Namespace) -> Outcome:
    """Ask a gate as the command line says; status 0, 1, 2 or 3."""

    def ask() -> Outcome:
        with open_gate(options.ledger, labels=options.labels, id_column=options.id, key=options.key) as gate:
            found = ask_gate(
                gate,
                options.predictions,
                options.incumbent,
                improvement=options.improvement,
                id_column=options.id,
                name=options.name,
            )
        text = json.dumps(found._asdict(), indent=2) if options.json else found.verdict
        return Outcome(_STATUS[found.verdict], text)

    return _ended(ask)


def _ended(run: Callable[[], Outcome]) -> Outcome:
    try:
        return run()
    except HoldoutError as error:
        return Outcome(BAD_INPUT, problem=str(error))
    except Halted as halted:
        return Outcome(_STATUS["halted"], problem=str(halted))
    except (Exception, SystemExit) as error:  # its words may quote the labels
        return Outcome(BAD_INPUT, problem=f"it failed, and there is no verdict ({type(error).__name__})")
