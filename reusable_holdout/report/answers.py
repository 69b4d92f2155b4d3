"""The report's table of answers."""

from __future__ import annotations

from typing import Any

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.guard.views import VIEW
from reusable_holdout.markup import escape
from reusable_holdout.report.findings import Findings

_MOST_ROWS = 2_000  # a page of more is slow to open
_HEADS = {  # with the class of each column
    "query": "number",
    "name": "name",
    "metric": "name",
    "asked by": "",
    "prior": "number",
    "answer": "number",
    "interval": "number",
    "told": "",
    "nats": "number",
    "charges left": "number",
    "when (UTC)": "",
}


def answers_table(found: Findings) -> str:
    """Return the HTML table of the answers in order; if it is long, older answers that only agreed are left out."""
    shown = _shown(found.history)
    left_out = len(found.history) - len(shown)
    heads = "".join(f'<th scope="col" class="{kind}">{head}</th>' for head, kind in _HEADS.items())
    about = f"{len(found.history):,} answers in the order they were released"
    if left_out:
        about += f"; {left_out:,} older ones are left out, and stand in the ledger's history"
    lines = "\n".join(map(_line, shown.itertuples()))
    return f"""<div class="scroll" tabindex="0" role="region" aria-label="{about}"><table>
<thead><tr>{heads}</tr></thead><tbody>
{lines}
</tbody></table></div>
<p class="soft">{about}.</p>"""


def _shown(history: pd.DataFrame) -> pd.DataFrame:
    if len(history) <= _MOST_ROWS:
        return history
    told = history["charged"] | (history["told"] != "agreed")
    told.iloc[-_MOST_ROWS // 2 :] = True
    return history[told].iloc[-_MOST_ROWS:]


def _line(row: Any) -> str:
    prior, value, low, high = (f"{one:.{row.decimals}f}" for one in (row.prior, row.value, row.low, row.high))
    numbers, told = [prior, value, f"{low} to {high}"], row.told
    if row.way == VIEW:
        numbers, told = ["", "", ""], "opened"
    elif row.failed:
        numbers, told = [prior, "", ""], "failed on the holdout"
    told += ", charged" * row.charged
    asked = [f"{row.query:,}", row.name, row.metric, row.way]
    left = [f"{row.nats:.2f}", f"{row.charges_left:,}", f"{row.asked_at:%Y-%m-%d %H:%M:%S}"]
    cells = zip(_HEADS.values(), [*asked, *numbers, told, *left], strict=True)
    inside = "".join(f'<td class="{kind}">{escape(cell)}</td>' for kind, cell in cells)
    return f"<tr{' class=charged' * row.charged}>{inside}</tr>"
