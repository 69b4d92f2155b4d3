"""Run an example script and keep what it prints in ``examples/recorded``, which the site shows.

``PYTHONPATH=tests:docs/site python -m documents.recorded examples/groups.py --runs 40`` runs the script with its
options, in an empty folder. With ``--timed`` before the script, as is due to whatever prints times, the file has the
day, too, and whether other work waited for the cores.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

from documents.pages import ROOT
from site_recorded import RECORDED, Recorded

from reusable_holdout import __version__

__all__ = ["made", "printed_by", "unprinted"]

_FIGURE = re.compile(r"(?<![\w.])(?:\d[\d,]*)?\.\d+(?!\w|\.\d)")
_NUMBER = re.compile(r"\d[\d,]*\.?\d*(?:e[-+]?\d+)?|\.\d+(?:e[-+]?\d+)?")
_QUIET = 0.4  # processes that run or wait, mean of a minute: less are none that matter


def printed_by(command: str) -> str:
    """What a script prints, run in a folder of its own, without spaces at the ends of lines."""
    _, script, *options = shlex.split(command)
    environment = os.environ | {
        "MPLBACKEND": "agg",
        "OMP_NUM_THREADS": "1",
        "REUSABLE_HOLDOUT_REGISTRY": "off",
    }
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, str(ROOT / script), *options],
            stdout=subprocess.PIPE,
            text=True,
            cwd=folder,
            env=environment,
            check=True,
        )
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.splitlines())


def unprinted(text: str, printed: str) -> list[str]:
    """Figures of a text, those with a point, that were not printed: rounded as they are, or as per cent."""
    numbers = [_number(one) for one in _NUMBER.findall(printed)]

    def is_printed(figure: str) -> bool:
        last = 0.5 * 10.0 ** -len(figure.partition(".")[2]) * (1 + 1e-9)
        return any(abs(scale * one - _number(figure)) <= last for one in numbers for scale in (1, 100))

    return [figure for figure in _FIGURE.findall(text) if not is_printed(figure)]


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def made(*, timed: bool) -> str:
    """Return the version; of what is timed also when and on what."""
    if not timed:
        return f"reusable-holdout {__version__}"
    cores = "quiet cores" if os.getloadavg()[0] < _QUIET else "cores that others used as well"
    day = datetime.datetime.now(datetime.UTC).date()
    return f"reusable-holdout {__version__}, {day}, on {os.cpu_count()} {cores}"


def _main() -> None:
    """Run one script and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--timed", action="store_true", help="it prints times")
    parser.add_argument("script", type=Path)
    parser.add_argument("options", nargs=argparse.REMAINDER)
    asked = parser.parse_args()
    command = shlex.join(["python", asked.script.as_posix(), *asked.options])
    one = Recorded(command, made(timed=asked.timed), printed_by(command))
    place = RECORDED / one.name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(one.file)


if __name__ == "__main__":
    _main()
