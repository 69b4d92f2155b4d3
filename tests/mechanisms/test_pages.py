"""The pages about mechanisms: every name and file on them exists, and no public name is left out."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

from reusable_holdout import mechanisms, noise
from reusable_holdout.mechanisms import accounting

_ROOT = Path(__file__).parents[2]
_DOCS = _ROOT / "docs"
_PAGE, _ACCOUNTING = (_DOCS / name for name in ("mechanisms.md", "accounting.md"))
_PARTS = dict(part.split("\n", 1) for part in re.split("^##+ ", _PAGE.read_text(), flags=re.MULTILINE))
_NAME = re.compile(r"`((?:accounting\.|noise\.)?[A-Za-z]\w+(?:\.\w+)?)(?:\([^`]*\))?`")
_FILE = re.compile(r"`([\w/]+\.py)(?:::(\w+))?`")
_DOCUMENTS = ["Ziani", "Gaboardi", "Slides", "Lyu, Su and Li", "Cohen and Lyu"]


def rows(part: str) -> list[list[str]]:
    """Return the cells of the table in a part of the page, without its head."""
    lines = [line for line in _PARTS[part].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


STATEMENTS = [row for row in rows("The source documents") if not row[0].startswith("**")]
WRONG = rows("What is wrong in them")
TOLD = sorted(set(_FILE.findall(_PAGE.read_text())))


@functools.cache
def functions_of(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_statements_of_all_five_documents_are_listed() -> None:
    heads = [row[0] for row in rows("The source documents") if row[0].startswith("**")]
    assert [name for name in _DOCUMENTS if any(head.startswith(f"**{name}") for head in heads)] == _DOCUMENTS
    assert len(heads) == len(_DOCUMENTS)
    assert len(STATEMENTS) >= 30
    assert len(WRONG) >= 10
    assert {len(row) for row in [*STATEMENTS, *WRONG]} == {3}


@pytest.mark.parametrize("row", [*STATEMENTS, *WRONG], ids=lambda row: row[0])
def test_every_statement_names_a_test(row: list[str]) -> None:
    assert _FILE.search(row[2])


@pytest.mark.parametrize("row", STATEMENTS, ids=lambda row: row[0])
def test_every_name_beside_a_statement_exists(row: list[str]) -> None:
    names = _NAME.findall(row[1])
    assert names or "examples/" in row[1]
    for name in names:
        found: object = mechanisms
        for part in name.split("."):
            found = noise if part == "noise" else getattr(found, part)


@pytest.mark.parametrize(("file", "test"), TOLD)
def test_every_file_of_the_page_exists_and_has_the_test(file: str, test: str) -> None:
    path = next(place for place in (_ROOT / file, _ROOT / "tests" / "mechanisms" / file) if place.exists())
    assert not test or test in functions_of(path)


def test_no_public_name_is_left_out() -> None:
    told = set(re.findall(r"\w+", _PAGE.read_text() + _ACCOUNTING.read_text()))
    assert {*mechanisms.__all__, *accounting.__all__} - told == set()
