"""The documentation, built as a site with every warning an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from documents.pages import ROOT

__all__ = ["ROOMS", "build"]

ROOMS = (
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "docs",
    "examples/README.md",
    "examples/recorded",
    "integrations",
    "mkdocs.yml",
    "reusable_holdout",
)
"""What the site is made of."""


def build(folder: Path) -> Path:
    """Build the site in a folder, and say where it is; skip where its tools are missing."""
    for library in ("material", "mkdocs", "mkdocstrings"):
        pytest.importorskip(library)
    made = folder / "site"
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(made)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return made
