"""The scripts about mechanisms run and say what is true of their data; docstrings of scripts name files that exist."""

import ast
import re

import pytest
from examples.scripts import EXAMPLES, run

MADE = {"my_counts.txt.gz", "start.py", "picture.png"}  # what a reader has, or a script makes


@pytest.mark.long(
    "examples/distinct_visitors.py", "reusable_holdout/mechanisms", "reusable_holdout/mechanisms/accounting"
)
def test_tested_sketches_find_the_large_pages_and_no_small_one(tmp_path):
    text = run("distinct_visitors.py", "--seed", "1", "--pages", "300", folder=tmp_path)
    rows = {line.split("  ")[0]: line for line in map(str.strip, text.splitlines()) if " of " in line}
    cells = {way: re.search(r"(\d+) of (\d+)\s+(\d+) of (\d+)\s+([\d.]+)$", row) for way, row in rows.items()}
    tested, lists = (cells[way] for way in ("sketches, tested", "lists, tested"))
    for found in (tested, lists):
        assert (found[1], found[3]) == (found[2], "0")
    assert 0.01 < float(tested[5]) < 0.3
    assert float(lists[5]) < 0.01


def test_scripts_name_files_that_exist():
    """In docstrings of modules; a name alone is a neighbour, or lies in the folder of examples or above it."""
    for script in EXAMPLES.rglob("*.py"):
        text = ast.get_docstring(ast.parse(script.read_text())) or ""
        for name in re.findall(r"(?<![\w./-])[\w./-]+\.(?:py|sh|md|yml|toml)\b", text):
            places = (script.parent, EXAMPLES, EXAMPLES.parent)
            assert name in MADE or any((place / name).exists() for place in places), (script, name)
