"""How long a guard answers: the quick table, and what it claims at 10,000 rows and tolerance 0.06."""

import re

from examples.test_examples import run


def test_an_honest_search_is_answered_hundreds_of_times(tmp_path):
    text = run("how_long_it_lasts.py", "--quick", "--output", "found", folder=tmp_path)
    assert list((tmp_path / "found").glob("*.png"))
    claim = re.search(r"1,000 questions declared: ([\d,]+) answered on average", text)
    assert int(claim[1].replace(",", "")) > 400
    held = re.search(r"in the tables over rows: ([\d.]+) of", text)
    assert float(held[1]) > 0.95
    rule = re.search(r"published rule: (\d+) charges", text)
    assert int(rule[1]) <= 5
