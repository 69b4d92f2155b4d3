"""Pictures for the pages: Chromium as they are taken with, and pictures made small.

``python docs/site/pictures.py docs/images/*.png`` makes those small that are not.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

__all__ = ["LARGEST_BYTES", "browser", "made_small"]

LARGEST_BYTES = 150_000
_COLOURS = 256
_SWITCHES = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
_SWITCHES += ["--disable-background-networking", "--disable-component-update"]


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    """Chromium without a window, which asks nobody for anything."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - reading the pages' pictures needs none

    with sync_playwright() as started:
        opened = started.chromium.launch(executable_path=shutil.which("chromium"), args=_SWITCHES)
        try:
            yield opened
        finally:
            opened.close()


def made_small(picture: Path) -> None:
    """Keep as many colours as a byte numbers: nobody sees it, and the file is a third."""
    from PIL import Image  # noqa: PLC0415 - comes with matplotlib

    with Image.open(picture) as image:
        few = image.convert("RGB").quantize(_COLOURS, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)


if __name__ == "__main__":
    for place in map(Path, sys.argv[1:]):
        if place.stat().st_size > LARGEST_BYTES:
            made_small(place)
