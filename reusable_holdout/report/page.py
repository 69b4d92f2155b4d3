"""The page of the report: the guard, the budget that is left, the answers, and their meaning."""

from __future__ import annotations

import html
from collections.abc import Iterator
from pathlib import Path

from reusable_holdout.guard import Verification, verify
from reusable_holdout.ledger.connection import resolved, shown
from reusable_holdout.markup import escape
from reusable_holdout.report.answers import answers_table
from reusable_holdout.report.findings import Findings, findings_of
from reusable_holdout.report.style import STYLE
from reusable_holdout.version import __version__

_STATES = {
    "": ("open", "it answers"),
    "charges": ("halted", "the charges are spent; it answers no more than a final"),
    "queries": ("halted", "the declared queries are asked; it answers no more than a final"),
    "final": ("closed", "a final was given; nothing new is answered"),
}
_ASKS = {
    "all": "An answer repeats the analyst's own prior as long as the holdout agrees with it; where it does not, the "
    "answer corrects the prior, and a charge is paid from a finite budget.",
    "steps": "An answer repeats the best score so far, until one improves on it by enough: that is told, and a charge "
    "is paid from a finite budget.",
    "claims": "Many series, such as teams, say what they believe of each submission: what stands is the answer, what "
    "would lead is measured, and what is wrong is a charge of its series' own.",
    "gates": "It says whether a model reaches a bar that was named, and nothing else; each yes is a charge, paid from "
    "a finite budget.",
}


def report_page(ledger: str | Path) -> tuple[str, Verification]:
    """Return the page of a ledger, made from released answers alone: no holdout and no key is needed.

    Parameters
    ----------
    ledger : str or Path
        SQLite file or URL.

    Returns
    -------
    str
        HTML that needs no other file. For a ledger that is not sound it shows the problems, and no answers.
    Verification

    Raises
    ------
    LedgerError
        If there is no such ledger, or it cannot be read.
    """
    verified = verify(ledger)
    title = f"Guarded holdout {_place(ledger)}"
    found = findings_of(str(ledger), verified) if verified.sound else []
    lines = [*_head(title), f"<h1>{escape(title)}</h1>", *_verdict(verified)]
    if found:
        lines += _promise(found[-1])
        for epoch in reversed(found):
            lines += _epoch(epoch, alone=len(found) == 1)
        lines += _meaning(found[-1])
    lines += [f'<p class="soft">Written by reusable-holdout {__version__}.</p>', "</body>", "</html>", ""]
    return "\n".join(lines), verified


def _place(ledger: str | Path) -> str:
    """Return the name of the ledger, without folders and passwords."""
    url, path = resolved(ledger)
    return shown(url) if path is None else path.name


def _head(title: str) -> list[str]:
    return [
        "<!DOCTYPE html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        """<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">""",
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        "</head>",
        "<body>",
    ]


def _verdict(verified: Verification) -> Iterator[str]:
    if verified.sound:
        seen = ", and its witness has seen no more than is here" * verified.witnessed
        yield (
            '<div class="verdict"><strong>The ledger is sound.</strong> Its hash chain, budget, thresholds and '
            f"intervals were recomputed: {verified.queries:,} answers, {verified.charges:,} charged{seen}.<br>"
        )
    else:
        problems = "".join(f"<li>{escape(problem)}</li>" for problem in verified.problems)
        yield (
            '<div class="verdict wrong" role="alert"><strong>The ledger is not sound.</strong> Its answers are not '
            f"shown, for they may not be what the guard released.<ul>{problems}</ul>"
        )
    yield (
        f'<span class="soft">Head <code>{escape(verified.head)}</code>: noted elsewhere, it lets a later '
        "verification find rows that were cut off.</span>"
    )
    if verified.another_budget:
        yield "<br><strong>Its rows had another budget besides: nothing is promised of both together.</strong>"
    if verified.mistake:
        yield f"<br><strong>Its certificate was mistaken:</strong> {escape(verified.mistake)}."
    yield "</div>"


def _promise(found: Findings) -> list[str]:
    plan = found.plan
    return [
        f"<p>A guard holds back {plan.rows:,} {found.units} of a holdout and answers how good models are by "
        f"<strong>{escape(found.metrics[0])}</strong>. {_ASKS[plan.asks]}</p>",
        f"<p>With probability {plan.confidence:.4g}, the intervals of <em>all</em> its answers together contain the "
        f"population values, however the questions were chosen. At scores near {plan.estimate:g}, which the plan was "
        f"made for, an agreed answer is within {plan.tolerance:g} of the population value.</p>",
    ]


def _epoch(found: Findings, *, alone: bool) -> Iterator[str]:
    heading = "" if alone else f" of epoch {found.number}"
    yield f"<h2>Budget{heading}</h2>"
    if found.another_budget and not alone:
        yield "<p><strong>The rows of this epoch had another budget besides.</strong></p>"
    yield from _left(found)
    yield f"<details><summary>The plan</summary><pre>{html.escape(str(found.plan))}</pre></details>"
    yield f"<h2>Answers{heading}</h2>"
    if not len(found.history):
        yield "<p>Nothing was asked yet.</p>"
        return
    yield answers_table(found)


def _left(found: Findings) -> Iterator[str]:
    plan, state = found.plan, found.state
    yield "<dl>"
    if plan.asks == "claims":
        more = "intervals grow with what is told"
        yield _card("charges of each series", f"{plan.charges:,}", f"{state.charges:,} were made in all")
    else:
        more = (
            "no more is told on request" if found.halted else f"{found.room:.2f} more can be told on request"
        )
        left = max(0, min(plan.charges, plan.queries) - state.charges)
        yield _card("charges left", f"{left:,} of {plan.charges:,}", "deviations that can be paid for")
    asked = f"{state.asked:,} were asked: a choice is as many as it has candidates, a final none"
    yield _card("queries left", f"{plan.queries - state.asked:,} of {plan.queries:,}", asked)
    yield _card("told so far", f"{state.nats:.2f} nats", more)
    yield _card("state", *_STATES[found.halted])
    yield "</dl>"


def _card(name: str, value: str, about: str) -> str:
    return f"<div><dt>{name}</dt><dd>{value}<small>{about}</small></dd></div>"


def _meaning(found: Findings) -> list[str]:
    return [
        "<h2>What an interval means</h2>",
        f"<p>With probability {found.plan.confidence:.4g} every interval on this page contains the value its model "
        "has in the population, all at once, also of the questions that were chosen in the light of earlier answers. "
        "This holds if the holdout's rows are independent draws from the population and none of them was used in "
        "training.</p>",
        "<p>It does not say that an answer is the holdout's own value: an agreed one is the analyst's prior, and its "
        "interval says how far it can be from the truth. It says nothing of a population that has changed since the "
        "rows were drawn. An interval of a ladder's submission that is no new best is open to the worse side, one of "
        "what a gate accepted to the better side. Intervals of comparisons are of differences between two models.</p>",
        "<p>In the table of answers, <em>told</em> is what a question ended with: <em>agreed</em>, or one of the "
        "ranges of values (<em>cell</em>, <em>span</em>) that were listed before any row was read, or of a choice its "
        "winner. <em>Nats</em> measure how surprising that was. What is told widens the intervals of later "
        "answers.</p>",
    ]
