"""The labelling example runs, keeps its budget, and its claims hold where there are rows enough."""

import runpy

import numpy as np
import pytest
from examples.scripts import EXAMPLES, run

from reusable_holdout.mechanisms.accounting import BoundedRangeEvent, PrivacyAccountant, optimal_composition

pytestmark = pytest.mark.long("examples/pate_labelling.py", "examples/teachers", "reusable_holdout")


def rows_of(text, name):
    """The table's rows of a data set, by budget and way."""
    found = {}
    for line in text.splitlines():
        cells = line.replace(" of ", "/").split()
        if cells[:1] == [name] and len(cells) >= 9:
            _, epsilon, way, asked, labelled, low = cells[:6]
            charged = cells[6] if way != "plain" else ""
            accuracy, same, student, composed = map(float, cells[-4:])
            found[float(epsilon), way] = (
                int(asked),
                int(labelled),
                int(low),
                charged,
                accuracy,
                same,
                student,
                composed,
            )
    return found


@pytest.fixture
def example(monkeypatch):
    """Names of the script."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return runpy.run_path(str(EXAMPLES / "pate_labelling.py"))


@pytest.mark.parametrize("calls", [100, 1_000, 4_000])
def test_calls_are_composed_by_bounded_range_which_is_less_than_that_of_pure_releases(example, calls):
    accountant = PrivacyAccountant()
    accountant.add(BoundedRangeEvent(0.025), count=calls)
    composed = example["plain_epsilon"](0.025, calls)
    assert composed == accountant.epsilon(example["DELTA"]).epsilon
    pure = optimal_composition(epsilon=0.025, count=calls, delta=example["DELTA"])
    assert composed < 0.65 * min(pure, calls * 0.025)


@pytest.mark.parametrize("calls", [100, 1_000])
def test_plain_labels_have_the_epsilon_that_bounded_range_leaves_each(example, calls):
    each = example["plainly"](np.zeros((calls, 2), dtype=int), epsilon=4.0, seed=1).epsilon_inside
    assert 3.99 < example["plain_epsilon"](each, calls) <= 4.0
    assert optimal_composition(epsilon=each, count=calls, delta=example["DELTA"]) > 6.0


def test_labels_keep_their_charges_and_plain_ones_label_every_query(tmp_path):
    text = run("pate_labelling.py", "--data", "adult", "--seed", "1", folder=tmp_path)
    assert (tmp_path / "pate_labelling.png").stat().st_size > 10_000
    rows = rows_of(text, "adult")
    assert len(rows) == 12
    for (epsilon, way), (asked, labelled, low, charged, accuracy, same, _, composed) in rows.items():
        if way == "plain":
            assert (asked, labelled, low) == (5_000, 5_000, 0)
            assert (same, composed) == (accuracy, epsilon)
            assert accuracy > 0.75  # of the commonest class: by pure composition it is below at epsilon 2
            continue
        hits, charges = map(int, charged.split("/"))
        assert hits <= charges
        assert hits == charges or asked == 5_000
        assert accuracy > max(0.75, same - 0.01)
        if epsilon > 2:  # at less, plain labels of all queries are noisier than those of a few
            assert accuracy < same + 0.02  # no way buys much
        if way == "(iii)":
            assert (labelled, low) == (asked, 0)  # a label that was not predicted is told, too
        else:
            assert labelled + low + hits == asked
            assert (low > 0) == (way == "(ii)")


def test_few_rows_are_labelled_too_and_the_charges_kept(tmp_path):
    text = run("pate_labelling.py", "--data", "digits", "--out", "here.png", folder=tmp_path)
    assert (tmp_path / "here.png").exists()
    assert {epsilon for epsilon, _ in rows_of(text, "digits")} == {8.0, 50.0}


def test_low_pays_where_half_of_the_queries_belong_to_no_class(tmp_path):
    rows = rows_of(run("pate_labelling.py", "--data", "strange", "--seed", "1", folder=tmp_path), "strange")
    for epsilon in (4.0, 8.0):
        (_, labelled, _, _, accuracy, _, student, _), (_, more, low, _, higher, _, better, _) = (
            rows[epsilon, way] for way in ("(i)", "(ii)")
        )
        assert more > labelled
        assert low > 0.7 * more  # the strange queries, free as well
        assert higher > accuracy + 0.2
        assert better > student
