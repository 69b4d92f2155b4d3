"""What example scripts printed, as files of ``examples/recorded``, and its place among what was measured.

``PYTHONPATH=tests:docs/site python -m documents.recorded examples/one_budget.py`` writes such a file.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from site_pages import ROOT

__all__ = ["RECORDED", "Recorded", "parts", "recorded", "scripts", "with_recorded"]

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
    def timed(self) -> bool:
        """Whether it prints times, which are never the same again."""
        return ", on " in self.made

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
    return [Recorded(*_read(file.read_text())) for file in files]


def with_recorded(text: str) -> str:
    """A page of what was measured, each part followed by what the scripts that it names printed, folded."""
    there = recorded()
    return "".join(
        part + _folded([one for one in there if one.script in scripts(part)]) for part in parts(text)
    )


def parts(text: str) -> list[str]:
    """A page cut at its headings."""
    return re.split(r"^(?=#+ )", text, flags=re.MULTILINE)


def scripts(text: str) -> set[str]:
    """Example scripts that a text names, without their ending, from ``examples/``."""
    return set(_NAMED.findall(text))


def _folded(printed: list[Recorded]) -> str:
    return "".join(f"{_block(one)}\n" for one in printed)


def _block(one: Recorded) -> str:
    lines = [f'??? quote "`{one.command}` printed ({one.made})"', "", "    ```text"]
    lines += [f"    {line}".rstrip() for line in one.printed.splitlines()]
    return "\n".join([*lines, "    ```", ""])


def _read(text: str) -> tuple[str, str, str]:
    command, made, _, printed = text.split("\n", maxsplit=3)
    return command, made, printed
