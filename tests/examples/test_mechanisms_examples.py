"""The scripts about mechanisms run and say what is true of their data; docstrings of scripts name files that exist."""

import ast
import re

import pytest
from examples.scripts import EXAMPLES, run

MADE = {"my_counts.txt.gz", "start.py", "picture.png"}  # what a reader has, or a script makes


@pytest.mark.long("examples/every_mechanism.py", "reusable_holdout/mechanisms", "reusable_holdout/accounting")
def test_every_mechanism_says_something_and_finds_the_large_counts(tmp_path):
    text = run("every_mechanism.py", "--seed", "1", folder=tmp_path)
    said = dict(re.split(r"  +", line, maxsplit=1) for line in text.splitlines()[2:])
    assert len(said) >= 30
    assert said["AboveThreshold"] == "[25]"
    assert said["Sparse, 3 charges"] == said["StandardSVT, monotonic"] == "[25, 27, 28]"
    assert said["exponential mechanism"] == "27"
    assert said['the same with "low" (3)'] == "[0, 3]"
    assert said["private tests, two targets: the rarer answer is paid for"] == "4 above; hits (4, 26)"
    assert not list(tmp_path.iterdir())


@pytest.mark.long(
    "examples/distinct_visitors.py", "reusable_holdout/mechanisms", "reusable_holdout/accounting"
)
def test_tested_sketches_find_the_large_pages_and_no_small_one(tmp_path):
    text = run("distinct_visitors.py", "--seed", "1", "--pages", "300", folder=tmp_path)
    rows = {line.split("  ")[0]: line for line in map(str.strip, text.splitlines()) if " of " in line}
    cells = {way: re.search(r"(\d+) of (\d+)\s+(\d+) of (\d+)\s+([\d.]+)$", row) for way, row in rows.items()}
    tested, lists = (cells[way] for way in ("sketches, tested", "lists, tested"))
    for found in (tested, lists):
        assert found[1] == found[2]
        assert found[3] == "0"
    assert 0.01 < float(tested[5]) < 0.3
    assert float(lists[5]) < 0.01


def test_scripts_name_files_that_exist():
    """In docstrings of modules; a name alone is a neighbour, or lies in the folder of examples or above it."""
    for script in EXAMPLES.rglob("*.py"):
        text = ast.get_docstring(ast.parse(script.read_text())) or ""
        for name in re.findall(r"(?<![\w./-])[\w./-]+\.(?:py|sh|md|yml|toml)\b", text):
            places = (script.parent, EXAMPLES, EXAMPLES.parent)
            assert name in MADE or any((place / name).exists() for place in places), (script, name)
