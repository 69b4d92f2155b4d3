"""The scripts about mechanisms run and say what is true of their data; docstrings of scripts name files that exist."""

import ast
import importlib.util
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
        assert found[1] == found[2]
        assert found[3] == "0"
    assert 0.01 < float(tested[5]) < 0.3
    assert float(lists[5]) < 0.01


MORE_THAN_PRINTED = {
    "Corollary 6 at epsilon 50, delta 1/2: WRONG",
    "proof of Theorem 10, alpha_2: WRONG by epsilon",
    "section 1: one hit, in units of epsilon",  # the order of it: a factor of 2 is left
    "Remark B.6: mixed calls, beside those alike",  # what being unlike costs; the document has no number
}


@pytest.mark.long(
    "examples/every_theorem.py", "reusable_holdout/mechanisms", "reusable_holdout/mechanisms/accounting"
)
def test_no_formula_promises_less_than_what_is_computed_but_those_that_are_told():
    found = importlib.util.spec_from_file_location("every_theorem", EXAMPLES / "every_theorem.py")
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    table = script.table()
    assert len(table) >= 35
    more = table["here"] > 1.001 * table["formula"]
    assert set(table["statement"][more]) == MORE_THAN_PRINTED
    q = table["statement"].str.contains(": q of ")
    assert q.sum() == 4
    assert table["here"][q].to_numpy() == pytest.approx(table["formula"][q].to_numpy(), rel=1e-12)


@pytest.mark.long("examples/published_mistakes.py", "reusable_holdout/mechanisms")
def test_published_mistakes_lose_what_the_paper_says(tmp_path):
    text = run("published_mistakes.py", "--charges", "2", folder=tmp_path)
    rows = {int(line.split()[0]): list(map(float, line.split()[1:])) for line in text.splitlines()[2:6]}
    first, third, fourth, fifth, sixth = rows[1_000]
    assert 0.99 < first <= 1 + 1e-3  # what is printed has four digits
    assert third > 50
    assert fourth == pytest.approx((1 + 6 * 2) / 4, abs=1e-3)
    assert fifth == float("inf")
    assert sixth > 900
    assert [rows[t][0] for t in sorted(rows)] == sorted(rows[t][0] for t in rows)


def test_scripts_name_files_that_exist():
    """In docstrings of modules; a name alone is a neighbour, or lies in the folder of examples or above it."""
    for script in EXAMPLES.rglob("*.py"):
        text = ast.get_docstring(ast.parse(script.read_text())) or ""
        for name in re.findall(r"(?<![\w./-])[\w./-]+\.(?:py|sh|md|yml|toml)\b", text):
            places = (script.parent, EXAMPLES, EXAMPLES.parent)
            assert name in MADE or any((place / name).exists() for place in places), (script, name)
