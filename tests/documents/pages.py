"""A page's blocks of code, and what it says that they print.

A block of text right after a block of Python, or of the program's own commands, is what that one prints.
If its last line is ``...``, more is printed than the page shows.

``PYTHONPATH=tests python -m documents.pages README.md`` runs a page and writes what it prints into it; with
``--check`` it only looks whether that is what the page says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from reusable_holdout.cli import main
from reusable_holdout.registry import registry_of_its_own

__all__ = ["DOCS", "ROOT", "Block", "as_shown", "blocks", "not_as_shown", "pages", "run", "with_output"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
_PAIR = re.compile(
    r"^```(?P<language>python|bash)\n(?P<code>.*?)^```\n(?:\n```text\n(?P<text>.*?)^```\n)?",
    flags=re.DOTALL | re.MULTILINE,
)
_STATUS = "; echo $?"
_MORE = "...\n"


class Block(NamedTuple):
    """A block of code, and the text that it shall print: None where the page does not show it."""

    language: str
    code: str
    text: str | None


def pages() -> list[str]:
    """Every page with code for users, by its place in the repository."""
    own = [ROOT / "README.md", ROOT / "AGENTS.md", *DOCS.rglob("*.md")]
    return sorted(str(page.relative_to(ROOT)) for page in own if "```python\n" in page.read_text())


def blocks(text: str) -> list[Block]:
    """All Python, and those commands whose output is shown."""
    found = [Block(one["language"], one["code"], one["text"]) for one in _PAIR.finditer(text)]
    return [block for block in found if block.language == "python" or block.text is not None]


def run(text: str, *, name: str) -> list[str]:
    """Run all blocks of a page in one namespace; what each printed, without spaces at the ends of lines."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    printed = []
    for block in blocks(text):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            if block.language == "python":
                exec(compile(block.code, name, "exec"), namespace)
            else:
                _commands(block.code)
        printed.append("".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines()))
    return printed


def _commands(code: str) -> None:
    """Run lines of a shell that are the program's own, such as ``reusable-holdout gate ...; echo $?``."""
    for line in code.replace("\\\n", " ").splitlines():
        command = line.removesuffix(_STATUS)
        program, *arguments = shlex.split(command, comments=True)
        if program != "reusable-holdout":
            raise AssertionError(f"only the program's own commands have output in the pages: {line}")
        try:
            status = main(arguments)
        except SystemExit as ended:
            status = ended.code
        if line != command:
            print(status)


def as_shown(printed: str, shown: str) -> str:
    """As many lines as the page shows, if it says that there are more."""
    if not shown.endswith(_MORE):
        return printed
    return "".join(printed.splitlines(keepends=True)[: shown.count("\n") - 1]) + _MORE


def with_output(text: str, printed: list[str]) -> str:
    """The page with what its blocks printed, where it shows that."""
    rest = iter(printed)

    def shown(found: re.Match[str]) -> str:
        if found["language"] == "bash" and found["text"] is None:
            return found[0]
        out = next(rest)
        if found["text"] is None:
            return found[0]
        return f"```{found['language']}\n{found['code']}```\n\n```text\n{as_shown(out, found['text'])}```\n"

    return _PAIR.sub(shown, text)


def not_as_shown(text: str, printed: list[str]) -> list[str]:
    """Code of the blocks that print something else than the page says, with what they print."""
    pairs = zip(blocks(text), printed, strict=True)
    return [
        f"{block.code}\n{out}"
        for block, out in pairs
        if block.text not in (None, as_shown(out, block.text or ""))
    ]


def _main() -> None:
    """Run pages, each in an empty folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if a page says something else"
    )
    options = parser.parse_args()
    for page in (page.resolve() for page in options.pages):
        text = page.read_text()
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), registry_of_its_own():
            printed = run(text, name=page.name)
        if not options.check:
            page.write_text(with_output(text, printed))
        elif wrong := not_as_shown(text, printed):
            sys.exit(f"{page}: not what it says\n" + "\n".join(wrong))


if __name__ == "__main__":
    _main()
