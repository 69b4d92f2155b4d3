"""``reusable-holdout redact``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from reusable_holdout.cli.command import PROGRAM, add, tell
from reusable_holdout.errors import Halted
from reusable_holdout.guard.answer import Answer

__all__ = ["add_redact"]

_HALTED = 2  # as a gate's


def add_redact(commands: Any) -> None:
    """Add ``redact``."""
    parser = add(
        commands,
        "redact",
        _redact,
        "Ask a guard about an evaluation, and write what the developer may see of it: outputs and the guard's answer, "
        "no target and no score. For the side that keeps the holdout. Exit status 2 if the budget is spent: then "
        "nothing was told, and nothing was written.",
        "redact --inspect full.eval --ledger guard.db --prior 0.7 --out public.eval",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--inspect", type=Path, metavar="LOG", help="full log of Inspect, .eval or .json")
    source.add_argument(
        "--lm-eval", type=Path, metavar="FOLDER", help="what lm_eval --log_samples --output_path wrote"
    )
    parser.add_argument("--out", type=Path, required=True, help="new log, or new folder")
    parser.add_argument(
        "--ledger", required=True, help="SQLite file or URL of a guard made with the ids, sorted as text"
    )
    parser.add_argument("--prior", type=float, help="the developer's estimate, or of the difference")
    parser.add_argument("--incumbent", type=Path, help="the same of another system: asks how much better")
    parser.add_argument("--score", help="scorer or metric, where there are several")
    parser.add_argument("--task", help="of lm-evaluation-harness")
    parser.add_argument("--filter", help="of lm-evaluation-harness, where there are several")
    parser.add_argument("--groups", help="of Inspect: key of the metadata by which the guard has groups")
    parser.add_argument(
        "--show", action="append", default=[], metavar="KEY", help="of metadata or documents; may be repeated"
    )


def _redact(options: argparse.Namespace) -> int:
    if options.lm_eval is not None and options.task is None:
        options.refuse("--lm-eval needs --task")
    try:
        answer = (_of_inspect if options.inspect is not None else _of_lm_eval)(options)
    except Halted as halted:
        print(f"{PROGRAM}: {halted}", file=sys.stderr)
        return _HALTED
    tell(answer._asdict() if options.json else str(answer), as_json=options.json)
    return 0


def _of_inspect(options: argparse.Namespace) -> Answer:
    from reusable_holdout_evals.inspect import redact

    return redact(
        options.inspect,
        options.out,
        ledger=options.ledger,
        prior=options.prior,
        scorer=options.score,
        groups=options.groups,
        incumbent=options.incumbent,
        show=options.show,
    )


def _of_lm_eval(options: argparse.Namespace) -> Answer:
    from reusable_holdout import ReusableHoldout
    from reusable_holdout_evals.lm_eval import redact, samples_of
    from reusable_holdout_evals.readers import read_lm_eval

    table = read_lm_eval(
        samples_of(options.lm_eval, options.task), metric=options.score, filter=options.filter
    )
    with ReusableHoldout.open(options.ledger, None, sorted(table.ids)) as guard:
        return redact(
            options.lm_eval,
            options.out,
            guard=guard,
            task=options.task,
            prior=options.prior,
            metric=options.score,
            filter=options.filter,
            incumbent=options.incumbent,
            show=options.show,
        )
