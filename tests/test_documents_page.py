"""The page that maps the source documents to the code: all it names exists, and no public mechanism is left out."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from pathlib import Path

import pytest

from reusable_holdout import mechanisms
from reusable_holdout.mechanisms import accounting

_ROOT = Path(__file__).parent.parent
_PAGE = (_ROOT / "docs" / "mechanisms-and-seeds.md").read_text()
_NAME = re.compile(r"`((?:accounting|attacks|datasets|guard|mechanisms|validity)(?:\.\w+)+)`")
_TEST = re.compile(r"`([\w/]+\.py)::(\w+)`")
_SCRIPT = re.compile(r"`([\w/]+\.py)`")


def rows(section: str) -> list[list[str]]:
    """Cells of a section's table."""
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def sections() -> dict[str, str]:
    """Text under each heading of the page."""
    return {part.partition("\n")[0]: part for part in _PAGE.split("\n## ")[1:]}


def documents() -> dict[str, list[list[str]]]:
    """The documents' tables."""
    return {title: rows(text) for title, text in sections().items() if "| item | what it says |" in text}


@functools.cache
def functions_of(file: str) -> set[str]:
    tree = ast.parse((_ROOT / "tests" / file).read_text())
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def source_of(script: str) -> str:
    """Text of a script and of the folders beside it that it imports."""
    path = _ROOT / "examples" / script
    text = path.read_text()
    folders = set(re.findall(r"^from (\w+)\.", text, flags=re.MULTILINE))
    parts = (part for name in sorted(folders) for part in sorted((path.parent / name).glob("*.py")))
    return text + "".join(part.read_text() for part in parts)


def test_there_are_five_documents_and_as_many_rows_as_is_said() -> None:
    told = [int(cells[1].strip(" |")) for cells in rows(_PAGE.partition("\n## ")[0])]
    assert [len(table) for table in documents().values()] == told
    assert len(told) == 5


@pytest.mark.parametrize("title", documents())
def test_every_row_names_code_a_test_and_a_script(title: str) -> None:
    for cells in documents()[title]:
        assert len(cells) == 5, cells
        item, says, code, tests, scripts = cells
        assert item, cells
        assert says, cells
        assert _TEST.search(tests), cells
        if "a tool of proof" in says:
            assert code == scripts == "none"
            continue
        names, named = _NAME.findall(code), _SCRIPT.findall(scripts)
        assert names, cells
        assert named, cells
        text = "".join(map(source_of, named))
        assert any(re.search(rf"\b{name.split('.')[-1]}\b", text) for name in names), cells


@pytest.mark.parametrize("name", sorted(set(_NAME.findall(_PAGE))))
def test_every_name_imports(name: str) -> None:
    *parents, last = ["reusable_holdout", *name.split(".")]
    found = importlib.import_module("reusable_holdout")
    for place, part in enumerate([*parents[1:], last], start=2):
        found = getattr(found, part, None) or importlib.import_module(".".join([*parents, last][:place]))
    assert found is not None


@pytest.mark.parametrize("file", sorted({file for file, _ in _TEST.findall(_PAGE)}))
def test_every_test_exists(file: str) -> None:
    named = {test for where, test in _TEST.findall(_PAGE) if where == file}
    assert named <= functions_of(file), named - functions_of(file)
    assert all(test.startswith("test_") for test in named)


def test_every_script_exists() -> None:
    for table in documents().values():
        for *_, scripts in table:
            for script in _SCRIPT.findall(scripts):
                assert (_ROOT / "examples" / script).exists(), script


def test_no_public_mechanism_is_left_out() -> None:
    named = set(_NAME.findall(_PAGE))
    public = {f"mechanisms.{name}" for name in mechanisms.__all__}
    public |= {f"accounting.{name}" for name in accounting.__all__}
    assert public <= named, sorted(public - named)


def test_what_is_said_to_be_wrong_is_tested() -> None:
    wrong = rows(sections()["What is wrong, or can be better"])
    assert len(wrong) >= 10
    for *_, tests in wrong:
        assert _TEST.search(tests), tests
