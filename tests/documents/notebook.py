"""The picture of docs/scikit-learn.md.

``PYTHONPATH=tests:docs/site python -m documents.notebook docs/images/scikit-learn.png`` takes it: the page's first
two blocks of code are run; then what a notebook shows of their objects is opened in Chromium.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import tempfile
from html import escape
from pathlib import Path

from documents.pages import DOCS, blocks
from pictures import browser, made_small

_CELLS = ("search", "search.best_answer_", "search.guard_results_.round(3)", "guard")
_STYLE = """
body { font: 14px sans-serif; margin: 14px; background: #fff; color: #1f2933; width: 720px }
pre { background: #f4f6f8; border-left: 3px solid #00897b; padding: 7px 10px; margin: 12px 0 8px }
table { border-collapse: collapse } td, th { padding: 3px 10px; text-align: right; white-space: nowrap }
"""


def main(picture: Path) -> None:
    """Run the code, show the objects, take the picture."""
    os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"
    names: dict[str, object] = {}
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks((DOCS / "scikit-learn.md").read_text())[:2]:
            exec(compile(block.code, "scikit-learn.md", "exec"), names)
    shown = "".join(f"<pre>{escape(cell)}</pre>{_shown(eval(cell, names))}" for cell in _CELLS)
    with tempfile.TemporaryDirectory() as folder, browser() as opened:
        page = Path(folder) / "page.html"
        page.write_text(f"<!doctype html><meta charset=utf-8><style>{_STYLE}</style>{shown}")
        tab = opened.new_page(viewport={"width": 760, "height": 400})
        tab.goto(page.as_uri())
        tab.screenshot(path=picture, full_page=True)
    made_small(picture)


def _shown(thing: object) -> str:
    """What a notebook makes of an object that ends a cell."""
    html = getattr(thing, "_repr_html_", None)
    return str(html()) if html else f"<code>{escape(repr(thing))}</code>"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
