"""What example scripts printed, as files of ``examples/recorded``, and its place among what was measured.

``PYTHONPATH=tests:docs/site python -m documents.recorded examples/one_budget.py`` writes such a file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from site_pages import ROOT

__all__ = ["RECORDED", "Recorded", "recorded", "with_recorded"]

RECORDED = ROOT / "examples" / "recorded"
_NAMED = re.compile(r"\bexamples/([\w/]+)\.py\b")


class Recorded(NamedTuple):
    """One run of a script.

    Attributes
    ----------
    command : str
        Command line, from the repository's root.
    made : str
        Version of the library; of what was timed also the day, and on what.
    printed : str
    """

    command: str
    made: str
    printed: str

    @property
    def script(self) -> str:
        """The script's name without its ending, from ``examples/``."""
        return _NAMED.findall(self.command)[0]

    @property
    def name(self) -> str:
        """What the file is called: the script with its options."""
        _, _, options = self.command.partition(".py")
        return "-".join([self.script, *re.findall(r"[\w.]+", options)]) + ".txt"

    @property
    def file(self) -> str:
        """The text of the file."""
        return f"{self.command}\n{self.made}\n\n{self.printed}"


def recorded() -> list[Recorded]:
    """All of them, by name."""
    files = sorted(RECORDED.rglob("*.txt"))
    return [Recorded(*_parts(file.read_text())) for file in files]


def with_recorded(text: str) -> str:
    """A page of what was measured, each part followed by what the scripts that it names printed, folded."""
    there = recorded()
    parts = re.split(r"^(?=#+ )", text, flags=re.MULTILINE)
    return "".join(
        part + _folded([one for one in there if one.script in _NAMED.findall(part)]) for part in parts
    )


def _folded(printed: list[Recorded]) -> str:
    return "".join(f"{_block(one)}\n" for one in printed)


def _block(one: Recorded) -> str:
    lines = [f'??? quote "`{one.command}` printed ({one.made})"', "", "    ```text"]
    lines += [f"    {line}".rstrip() for line in one.printed.splitlines()]
    return "\n".join([*lines, "    ```", ""])


def _parts(text: str) -> tuple[str, str, str]:
    command, made, _, printed = text.split("\n", maxsplit=3)
    return command, made, printed
