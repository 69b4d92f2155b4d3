"""An experiment's note tells of the holdout, between marks; the rest is its owner's."""

import json

import pytest
from cases import refuses
from mlflow import MlflowClient
from reusable_holdout_mlflow import track
from reusable_holdout_mlflow.search import pages_of

from reusable_holdout.errors import Halted

pytestmark = pytest.mark.long("integrations/reusable_holdout_mlflow", "reusable_holdout")
NOTE = "mlflow.note.content"


@pytest.fixture
def ask(database, questions):
    def ask(guard, name, prior):
        with track(guard, experiment="churn", tracking_uri=database, run_name=name, live=False):
            guard.evaluate(questions[0][0], prior=prior)

    return ask


@pytest.fixture
def churn(database):
    """The experiment as it is now."""
    client = MlflowClient(database)
    return lambda: client.get_experiment_by_name("churn")


def test_its_first_line_names_the_overfitted_run_and_what_is_left(database, churn, make_guard, ask):
    guard = make_guard()
    ask(guard, "plain", 0.9)
    assert churn().tags[NOTE].splitlines()[0].count("**No overfitting seen** · ") == 1
    ask(guard, "memorised", 0.999)
    ask(guard, "<img src=x> [a](b) | c", 0.901)
    note = churn().tags[NOTE]
    first = note.splitlines()[0]
    assert "**Overfitted: memorised by 0." in first
    assert f"{guard.charges_left} of {guard.plan.charges} charges left" in first
    (page,) = pages_of(MlflowClient(database), guard.digest)
    assert f"(get-artifact?path=gap_and_budget.png&run_uuid={page.info.run_id}&query=3)" in note
    rows = [line.split(" | ")[0] for line in note.splitlines() if line.startswith("| ")]
    assert rows == ["| run", "| img src=x   a  b    c", "| memorised", "| plain"]


def test_what_others_wrote_stays(database, churn, make_guard, ask, tmp_path):
    client, guard, other = MlflowClient(database), make_guard(), make_guard(ledger=tmp_path / "o.db", seed=1)
    client.set_experiment_tag(churn().experiment_id, NOTE, "Read me *first*.")
    ask(guard, "one", 0.9)
    ask(other, "two", 0.9)
    client.set_experiment_tag(churn().experiment_id, NOTE, churn().tags[NOTE] + "\n\nRead me last.")
    ask(guard, "three", 0.95)
    note = churn().tags[NOTE]
    assert note.startswith("Read me *first*.\n\n<!-- part of holdout")
    assert note.endswith("\n\nRead me last.")
    assert note.count("![gap and budget]") == 2


@pytest.mark.parametrize(("length", "parts"), [(4_300, 1), (4_995, 0)])
def test_a_note_that_is_nearly_full_gets_less_or_nothing(database, churn, make_guard, ask, length, parts):
    MlflowClient(database).set_experiment_tag(churn().experiment_id, NOTE, "x" * length)
    for number in range(4):
        ask(make_guard(), f"run {number} {'y' * 40}", 0.9 + number / 100)
    assert churn().tags[NOTE].startswith("x" * length)
    assert churn().tags[NOTE].count("charges left · ") == parts


def test_a_halt_is_in_its_first_line(database, churn, make_guard, ask, questions):
    guard = make_guard(queries=1)
    ask(guard, "one", 0.9)
    refuses(Halted, "", guard.evaluate, questions[1][0], prior=0.9)
    assert " · halted: all queries asked · " in churn().tags[NOTE].splitlines()[0]


def test_the_columns_are_a_saved_view_that_its_owner_may_change(database, churn, make_guard, ask):
    name = "mlflow.sharedViewState.reusable-holdout"
    ask(make_guard(), "one", 0.9)
    columns = json.loads(json.loads(churn().tags[name])["state"])["selectedColumns"]
    assert columns == [
        "tags.`holdout_overfitting`",
        "tags.`holdout_budget`",
        *(f"metrics.`holdout_{name}`" for name in ("answer", "low", "high", "gap", "charges_left")),
    ]
    MlflowClient(database).set_experiment_tag(churn().experiment_id, name, "mine")
    ask(make_guard(), "two", 0.91)
    assert churn().tags[name] == "mine"
