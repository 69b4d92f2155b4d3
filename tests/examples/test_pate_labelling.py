"""The labelling example runs, keeps its budget, and its claims hold where there are rows enough."""

import pytest
from examples.scripts import run

pytestmark = pytest.mark.long("examples/pate_labelling.py", "examples/teachers", "reusable_holdout")


def rows_of(text, name):
    """The table's rows of a data set, by budget and way."""
    found = {}
    for line in text.splitlines():
        cells = line.replace(" of ", "/").split()
        if cells[:1] == [name] and len(cells) >= 9:
            _, epsilon, way, asked, labelled, low = cells[:6]
            charged = cells[6] if way != "plain" else ""
            accuracy, student, composed = map(float, cells[-3:])
            found[float(epsilon), way] = (
                int(asked),
                int(labelled),
                int(low),
                charged,
                accuracy,
                student,
                composed,
            )
    return found


def test_labels_cost_less_than_composition_where_teachers_agree(tmp_path):
    text = run("pate_labelling.py", "--data", "adult", "--seed", "1", folder=tmp_path)
    assert (tmp_path / "pate_labelling.png").stat().st_size > 10_000
    rows = rows_of(text, "adult")
    assert len(rows) == 12
    for (epsilon, way), (asked, labelled, low, charged, accuracy, _, composed) in rows.items():
        if way == "plain":
            assert (asked, labelled, low) == (5_000, 5_000, 0)
            continue
        hits, charges = map(int, charged.split("/"))
        assert hits <= charges
        assert hits == charges or asked == 5_000
        assert (composed > epsilon) or way == "(ii)"  # whose calls near its threshold are many here
        assert accuracy > rows[epsilon, "plain"][4]
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
        (_, labelled, _, _, accuracy, student, _), (_, more, low, _, higher, better, _) = (
            rows[epsilon, way] for way in ("(i)", "(ii)")
        )
        assert more > labelled
        assert low > 0.7 * more  # the strange queries, free as well
        assert higher > accuracy + 0.2
        assert better > student
