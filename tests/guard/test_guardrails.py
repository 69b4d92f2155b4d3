"""Gates with guardrails: one question, one bit, one charge, several metrics."""

import contextlib
import math

import numpy as np
import pytest
from cases import refuses
from guard.forging import rewrite
from made_guards import made_guard
from sklearn.linear_model import LogisticRegression

from reusable_holdout import Difference, verify
from reusable_holdout.errors import BudgetError, Halted, InputError, ModelError
from reusable_holdout.metrics import Metric
from reusable_holdout.ways import Terms, Told
from reusable_holdout.ways.gate import GuardedGate

ROWS = 4_000
LABELS = np.arange(ROWS) % 2
GROUP = np.arange(ROWS) < ROWS // 2


def predictions(first, second=None):
    """Of this accuracy in the first half of the rows, and in the second."""
    place = np.arange(ROWS // 2)
    halves = [place < share * ROWS // 2 for share in (first, first if second is None else second)]
    return np.where(np.concatenate(halves), LABELS, 1 - LABELS)


@pytest.fixture
def gate(tmp_path):
    with made_guard(
        None, LABELS, policy="gate", queries=40, charges=4, noise=0.0, ledger=tmp_path / "gate.db", seed=1
    ) as made:
        yield made


def test_yes_needs_every_metric_and_is_one_charge(gate):
    group = gate.on(sample_weight=GROUP)
    both = gate.gate(predictions(0.9), 0.85, guardrails={group: 0.85})
    assert (both.told, both.charged, both.charges_left) == ("yes with 1:0.85", True, 3)
    own = gate.gate(predictions(0.8, 1.0), 0.85, guardrails={group: 0.85})
    rail = gate.gate(predictions(1.0, 0.6), 0.85, guardrails={group: 0.85})
    assert own.told == rail.told == "no with 1:0.85"
    assert not own.charged
    assert gate.charges_left == 3
    assert gate.queries_asked == 6  # each metric of each question
    assert (own.low, own.high) == (rail.low, rail.high) == (0.0, 1.0)  # which one failed is not told
    assert own.guardrails[0][2:] == (0.0, 1.0)


def test_a_yes_is_charged_at_the_last_of_the_queries_that_it_takes(gate, tmp_path):
    group = gate.on(sample_weight=GROUP)
    told = gate.gate(predictions(0.9), 0.85, guardrails={group: 0.85}).nats
    told += gate.gate(predictions(0.9), at_least=0.85).nats  # the third query
    told += gate.gate(predictions(0.92), 0.85, guardrails={group: 0.85}).nats
    gate.gate(predictions(0.8), 0.85, guardrails={group: 0.85})
    final = gate._view.ways.final.certificate
    length = final.final_length(charges=3, nats=told, last_charge=5)
    expected = final.final_half_width(length=length, estimate=gate.plan.estimate)
    assert gate.final_width == pytest.approx(expected, rel=1e-9)
    gate.final(predictions(0.9))
    assert verify(tmp_path / "gate.db").problems == []


def test_each_bound_of_a_yes_has_its_part_of_the_questions_failure_probability(gate):
    group = gate.on(sample_weight=GROUP)
    answer = gate.gate(predictions(0.9), 0.85, guardrails={group: 0.8})
    assert (answer.low, answer.high) == (0.85, 1.0)
    assert answer.guardrails == (("accuracy", 0.8, 0.8, 1.0),)
    certificate = gate._view.ways.main.certificate
    length = certificate.length(charges=1, nats=answer.nats)
    alone, both = (
        math.ceil(400_000 * certificate.bound.reach_low(0.85, log_level=certificate.log_level(one, 1.0)))
        for one in (length, length + math.log(2))
    )
    assert alone < both  # each of two values has half


def test_models_are_asked_about_with_their_own_kind_of_predictions(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 3))
    y = (X[:, 0] + rng.normal(size=ROWS) > 0).astype(int)
    model = LogisticRegression().fit(X[:500], y[:500])
    worse = LogisticRegression().fit(X[:500, ::-1], y[:500])
    with made_guard(X, y, policy="gate", queries=40, charges=4, reveals=2, seed=1) as gate:
        auc, half = gate.on("roc_auc"), gate.on(sample_weight=GROUP)
        yes = gate.gate(model, at_least=0.6, guardrails={auc: 0.6, half: 0.6})
        assert yes.charged
        assert [one.metric for one in yes.guardrails] == ["roc_auc", "accuracy"]
        no = gate.gate(Difference(worse, model), at_least=0.0, guardrails={half: -0.01})
        assert (no.paired, no.charged) == (True, False)
        better = gate.gate(Difference(model, worse), at_least=0.0, guardrails={half: -0.01})
        assert better.charged
        with pytest.raises(InputError, match="compared row by row"):
            gate.gate(Difference(model, worse), at_least=0.0, guardrails={auc: -0.01})


def test_a_guardrail_may_have_predictions_of_its_own(gate):
    brier = gate.on("brier")
    sure = np.where(predictions(0.95), 0.95, 0.05)
    yes = gate.gate(predictions(0.95), 0.9, guardrails={brier: (sure, 0.15)})
    assert yes.charged
    assert yes.guardrails[0].low == 0.0
    assert yes.guardrails[0].high > 0.15
    bad = gate.gate(predictions(0.95), 0.9, guardrails={brier: (1 - sure, 0.15)})
    assert not bad.charged


def test_a_guardrail_that_fails_on_the_holdout_never_lets_pass(gate):
    broken = []

    def loss(y_true, y_pred):
        if broken:
            raise ValueError("secret")
        return (y_true != y_pred) + 0.0

    own = gate.on(
        Metric(name="broken", loss=loss, lower=0.0, upper=1.0, response="labels", greater_is_better=False),
        name="own",
    )
    broken.append(True)
    with contextlib.suppress(ModelError):  # it is told where the plan has room for what that costs
        gate.gate(predictions(0.95), 0.9, guardrails={own: 0.5})
    assert gate.history()["told"].iloc[-1].startswith(("failed with", "no with"))


def test_guardrails_of_another_guard_are_refused_in_words(gate):
    group = gate.on(sample_weight=GROUP)
    stranger = made_guard(None, LABELS, policy="gate", queries=40, charges=4, seed=2)
    for wrong in ({stranger: 0.5}, {gate: 0.5}, {"accuracy": 0.5}):
        with pytest.raises(InputError, match="another metric of the same rows"):
            gate.gate(predictions(0.9), 0.9, guardrails=wrong)
    for wrong in ([group], {}, 0.5):
        refuses(InputError, "must be a dict", gate.gate, predictions(0.9), 0.9, guardrails=wrong)
    refuses(InputError, "a tuple of 3", gate.gate, predictions(0.9), 0.9, guardrails={group: (1, 2, 0.5)})
    assert gate.queries_asked == 0


def test_a_gate_asks_no_more_metrics_than_queries_are_left(gate):
    group = gate.on(sample_weight=GROUP)
    for number in range(39):
        gate.gate(predictions(0.1 + number / 100), at_least=0.95)
    with pytest.raises(BudgetError, match="2 new questions asked, 1 left"):
        gate.gate(predictions(0.9), 0.85, guardrails={group: 0.8})
    gate.gate(predictions(0.9), at_least=0.95)
    refuses(Halted, "", gate.gate, predictions(0.9), 0.85, guardrails={group: 0.8})


def test_a_ledger_with_guardrails_verifies(gate, tmp_path):
    group = gate.on(sample_weight=GROUP)
    for share in (0.7, 0.9, 0.95):
        gate.gate(predictions(share), 0.85, guardrails={group: 0.8})
    gate.gate(Difference(predictions(0.9), predictions(0.8)), 0.05, guardrails={group: 0.0})
    assert verify(tmp_path / "gate.db").problems == []
    assert gate.history()["way"].iloc[-1] == "guarded-compare"


@pytest.mark.parametrize("told", ["1:7.5", "1:nan", "7:0.6", "0:0.6", "1:0.6 1:0.9"])
def test_guardrails_that_no_guard_can_have_do_not_verify(gate, tmp_path, told):
    assert gate.gate(predictions(0.9), 0.85, guardrails={gate.on(sample_weight=GROUP): 0.6}).charged
    gate.close()
    rewrite(
        tmp_path / "gate.db",
        lambda rows: [one._replace(told=f"yes with {told}") if "yes" in one.told else one for one in rows],
    )
    assert any("guardrails" in one for one in verify(tmp_path / "gate.db").problems)


def test_an_outcome_with_another_spelling_is_none(gate):
    way = gate._view.ways.guarded_gate
    assert isinstance(way, GuardedGate)
    for told in (
        *("yes", "yes with", "yes with 1:0.50", "maybe with 1:0.5", "yes with 1:0.5 2", "agreed"),
        "cell 0",
    ):
        read = Told.parse(told)
        if read is not None:
            refuses(InputError, "has no outcome", way.outcome, read, Terms(0.5))
