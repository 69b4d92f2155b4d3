"""The matrix in the docs: ``PYTHONPATH=tests python -m conformance.table docs/loops.md``.

Runs every cell, a backend after the other, and writes how each loop ended, and the longest time from the last answer
to the caller who was told of a halt, below the page's mark.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

from conformance.cells import SITUATIONS, Cell
from conformance.loops import BACKENDS, LOOPS
from conformance.truths import ASKING, REFUSED, SCORED

_MARK = "<!-- written by tests/conformance/table.py -->"
_ENDS = {"numbers": "numbers", "InputError": "refused", "Halted": "halted", "LedgerError": "ledger error"}


def main() -> None:
    """Run all, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("page", type=Path)
    page = parser.parse_args().page
    found: list[Cell] = []
    # as in the tests: two searches with XGBoost hang in forked workers, guarded or not, if OpenMP has several threads
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    for backend in BACKENDS:
        ran = subprocess.run(
            [sys.executable, "-m", "conformance.cells", backend],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            env=environment,
        )
        found += [Cell(**json.loads(line)) for line in ran.stdout.splitlines() if line.startswith("{")]
    page.write_text(page.read_text().partition(_MARK)[0] + f"{_MARK}\n\n{_page(found)}")


def _page(found: list[Cell]) -> str:
    halts = [cell for cell in found if cell.ended == "Halted"]
    worst = max(halts, key=lambda cell: cell.seconds)
    good = sum(cell.good for cell in found)
    lines = [
        f"{good} of {len(found)} cells end as they must. From the last answer to the caller a halt took "
        f"{worst.seconds:.1f} s at most ({worst.loop}, {worst.backend}).",
        "",
        "| loop | backends | " + " | ".join(SITUATIONS) + " |",
        "|---|---|" + "---|" * len(SITUATIONS),
    ]
    for loop in dict.fromkeys(loop for loops in LOOPS.values() for loop in loops):
        own = [cell for cell in found if cell.loop == loop]
        backends = ", ".join(dict.fromkeys(cell.backend for cell in own))
        lines.append(f"| {loop} | {backends} | " + " | ".join(_ended(own, one) for one in SITUATIONS) + " |")
    return "\n".join([*lines, "", *_truths()]) + "\n"


def _truths() -> list[str]:
    """Loops that are compared with the truth; `test_truths` fails if one of them does not end so."""
    ends = {"near the holdout's score": [*SCORED, *ASKING], "refused, nothing charged": REFUSED}
    return [
        "These loops are compared with the holdout's own scores, computed by hand, in one process and in two workers.",
        "",
        "| loop | each of its numbers |",
        "|---|---|",
        *(f"| {loop} | {end} |" for end, loops in ends.items() for loop in loops),
    ]


def _ended(cells: list[Cell], situation: str) -> str:
    own = [cell for cell in cells if cell.situation == situation]
    ends = dict.fromkeys(_ENDS.get(cell.ended, cell.ended) for cell in own)
    wrong = [f"{cell.backend}: {cell.words}" for cell in own if not cell.good]
    return ", ".join(ends) + "".join(f" **{one}**" for one in wrong)


if __name__ == "__main__":
    main()
