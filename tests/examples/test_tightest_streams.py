"""The table of streams in docs/mechanisms.md is the one that the script prints."""

import re

import pytest
from examples.scripts import EXAMPLES, run
from long_tests import MECHANISMS

PAGE = (EXAMPLES.parent / "docs" / "mechanisms.md").read_text()

pytestmark = pytest.mark.long(*MECHANISMS, "examples/tightest_streams.py", "docs/mechanisms.md")


def reaches(printed):
    """Reach of each cell, by the number of charges."""
    lines = printed.splitlines()[2:]
    return {
        int(line.split(" | ")[0].strip("| ")): [
            float(n.replace(",", "")) for n in re.findall(r" ([\d,]+) \|", line)[1:]
        ]
        for line in lines
    }


def test_the_page_shows_the_table_and_tells_the_reach_of_counts(tmp_path):
    printed = run("tightest_streams.py", folder=tmp_path)
    assert len(printed.splitlines()) == 8
    assert printed in PAGE
    all_ways, one_way = reaches(printed), reaches(run("tightest_streams.py", "--monotonic", folder=tmp_path))
    shares = [one / all_ for c in (1, 3, 10) for one, all_ in zip(one_way[c], all_ways[c], strict=True)]
    assert len(shares) == 9
    assert (f"{min(shares):.2f}"[1:], f"{max(shares):.2f}"[1:]) == (".54", ".65")
    assert "the reach is then .54 to .65 of these" in PAGE


def test_all_streams_are_listed_with_the_least_noise_first(tmp_path):
    rows = run("tightest_streams.py", "--charges", "30", folder=tmp_path).splitlines()[2:]
    assert len(rows) >= 7
    assert rows[0].startswith("| target charging |")
    found = [float(row.split(" | ")[-1].strip("| ").replace(",", "")) for row in rows]
    assert (found, found[0]) == (sorted(found), 517)
