"""The labelling example runs, keeps its budget, and its claim holds where there are rows enough."""

import pytest
from examples.scripts import run

pytestmark = pytest.mark.long("examples/pate_labelling.py", "reusable_holdout")


def test_labels_cost_less_than_composition_where_teachers_agree(tmp_path):
    text = run("pate_labelling.py", "--data", "adult", "--seed", "1", folder=tmp_path)
    assert (tmp_path / "pate_labelling.png").stat().st_size > 10_000
    rows = [line.split() for line in text.splitlines() if line.split()[:1] == ["adult"]]
    assert len(rows) == 3
    for row in rows:
        _, epsilon, asked, labelled, hits, _, charges, accuracy, plain_epsilon, plain_accuracy = row
        assert int(labelled) + int(hits) == int(asked)
        assert int(hits) <= int(charges)
        assert float(plain_epsilon) > float(epsilon)
        assert float(accuracy) > float(plain_accuracy)


def test_few_rows_are_labelled_too_and_the_charges_kept(tmp_path):
    text = run("pate_labelling.py", "--data", "digits", "--out", "here.png", folder=tmp_path)
    assert (tmp_path / "here.png").exists()
    assert "50.0" in text
