"""The example of an honest search: every judge is asked, and what each tells is what it should be."""

import numpy as np
import pandas as pd
import pytest
from examples.scripts import run
from scipy import stats

ROOMS = ["examples/honest_search.py", "examples/searches"]


@pytest.fixture
def judges(imported):
    return imported("searches.judges")


@pytest.fixture
def asked(judges, monkeypatch):
    """Rules of known scores on 400 training, 1,000 holdout and 600 fresh rows, and who can be asked about them."""
    from searches.candidates import Split

    parts = Split(*np.split(np.arange(2_000), [400, 1_400]))
    labels = (np.arange(2_000) % 2).astype(np.int8)

    def rule(train, holdout):
        right = np.zeros(2_000, np.bool_)
        right[: round(train * 400)] = True
        right[400 : 400 + round(holdout * 1_000)] = True
        return np.where(right, labels, 1 - labels)

    def judge(name, questions):
        (kind,) = (each for each in judges.JUDGES if each.name == name)
        return kind(labels, parts, questions=questions, best=2, estimate=0.8)

    return rule, judge


@pytest.mark.long(*ROOMS, "reusable_holdout")
def test_every_judge_is_asked_on_every_set(tmp_path):
    text = run("honest_search.py", "--quick", "--jobs", "1", "--output", "here", folder=tmp_path)
    table = pd.read_csv(tmp_path / "here" / "honest_search.csv")
    assert len(table) == 3 * 2 * 10  # sets, analysts, judges
    guarded = table[table["judge"].str.startswith("guard")]
    assert guarded["holds"].all()
    assert guarded["all hold"].all()
    assert (guarded["charges"] < 3).all()
    wide = table.groupby("judge")["half-width"].mean()
    assert wide["cross-validation, one look"] < wide["guard: final of all"] < wide["a tenth set aside"]
    assert "breast cancer: 120 training, 220 holdout and 229 fresh rows" in text
    assert (tmp_path / "here" / "honest_search.png").stat().st_size > 10_000


def test_exact_intervals_are_those_of_scipy(judges):
    for right, rows in [(0, 10), (7, 10), (10, 10), (430, 500)]:
        known = stats.binomtest(right, rows).proportion_ci(0.95, "exact")
        assert judges.exact_interval(right, rows) == pytest.approx((known.low, known.high), abs=1e-9)


@pytest.mark.parametrize(
    ("name", "value", "last"),
    [
        ("cross-validation alone", 0.9, 0.9),
        ("cross-validation, one look", 0.9, 0.7),
        ("plain holdout", 0.7, 0.7),
        ("Bonferroni", 0.7, 0.7),
        ("sample splitting", 1.0, 1.0),
        ("a tenth set aside", 2 / 3, 1.0),
        ("guard: final of all", 0.9, 0.7),
    ],
)
def test_each_judge_tells_of_its_own_rows(asked, name, value, last):
    rule, judge = asked
    one = judge(name, 4)
    told = one.ask(rule(0.9, 0.7))
    assert told == pytest.approx(value)
    settled = one.settle([rule(0.9, 0.7)], [told])
    assert settled.value == pytest.approx(last)
    assert settled.low <= settled.value <= settled.high
