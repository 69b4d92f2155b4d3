"""Failures on the holdout are told as "failed" in every way to ask: no value, no interval, a price that is paid."""

import itertools
import math
import signal
import sys
import warnings
from contextlib import suppress

import numpy as np
import pytest
from cases import for_each, refuses
from guard.counting import AGREEMENT
from made_guards import made_guard

from reusable_holdout import Metric, verify
from reusable_holdout.errors import Halted, ModelError
from reusable_holdout.ways import FAILED, NOT_CERTIFIED, Told

ROWS = 60
PLANS = ("all", "gates", "claims")


class Secret(BaseException):
    """One that no `except Exception` catches."""


RAISED = (ValueError, KeyboardInterrupt, SystemExit, MemoryError, RecursionError, GeneratorExit, Secret)


class Breaking:
    """A metric of the user's own, that fails on some predictions in some way."""

    def __init__(self, kind):
        self.kind, self.broken = kind, {}

    def loss(self, y, predictions):
        how = self.broken.get(predictions.tobytes())
        if how == "shape":
            return np.zeros(3)
        if how is not None:
            raise how(f"the labels are {y!r}")
        return self.plainly(y, predictions)

    def statistic(self, y, predictions):
        each = self.loss(y, predictions)
        return each if len(each) == 3 else np.mean(each)

    def plainly(self, y, predictions):
        if self.kind == "labels":
            return (y == predictions) + 0.0
        return 1.0 - np.abs(y - predictions)

    def metric(self, name="own"):
        family, response = ("binomial", "labels") if self.kind == "labels" else ("bounded", "values")
        given = {"lower": 0.0, "upper": 1.0, "greater_is_better": True}
        if self.kind != "statistic":
            return Metric(name=name, loss=self.loss, family=family, response=response, **given)
        return Metric(
            name=name,
            statistic=self.statistic,
            differences=np.full(ROWS, 1.0 / ROWS + 1e-9),
            family="bounded-difference",
            response=response,
            **given,
        )


class OfRows:
    """A model that gives predictions for rows of their length, and fails if it is told to; it looks at no label."""

    def __init__(self, predictions, how):
        self.predictions, self.how = predictions, how

    def predict(self, X):
        if self.how is not None and len(X) == ROWS:
            if self.how == "shape":
                return self.predictions[:3]
            if self.how == "nan":
                return np.where(np.arange(ROWS) == 7, np.nan, self.predictions)
            raise self.how(f"a rare value among {X!r}")
        return np.resize(self.predictions, len(X))


class Player:
    """A small random guard, and random questions of which some fail."""

    def __init__(self, asks, kind, draw):
        self.asks, self.draw, self.metric = asks, draw, Breaking(kind)
        self.y = draw.integers(0, 2, ROWS) if kind == "labels" else draw.uniform(0.0, 1.0, ROWS)
        given = {"queries": 30, "charges": int(draw.choice([2, 5])), "vacuous": True}
        if asks != "claims":
            given |= {"noise": float(draw.choice([0.0, 0.001])), "reveals": 1, "choices": [3]}
        self.guard = made_guard(
            draw.normal(size=(ROWS, 2)), self.y, metric=self.metric.metric(), gates=asks == "gates",
            board="claims" if asks == "claims" else None, **given,
        )  # fmt: skip
        self.expected = {}  # of each name whether it fails, and its score by hand

    def predictions(self):
        share = self.draw.random()
        if self.metric.kind == "labels":
            return np.where(self.draw.random(ROWS) < share, self.y, 1 - self.y)
        return np.clip(self.y + share * self.draw.normal(size=ROWS), 0.0, 1.0)

    def entry(self, name, way):
        """Predictions, and a model that gives them; whether it fails is noted under its name."""
        predictions = self.predictions()
        how = None
        if self.draw.random() < 0.4:
            how = self.draw.choice(np.array([*RAISED, "shape", *["nan"] * (way != "metric")], dtype=object))
        if how is not None and way == "metric":
            self.metric.broken[predictions.tobytes()] = how
        self.expected[name] = how, float(np.mean(self.metric.plainly(self.y, predictions)))
        return predictions, OfRows(predictions, how if way == "model" else None)

    def prior(self):
        return float(self.draw.uniform(0.05, 0.95))

    def ask(self, subject, prior, name):
        if self.asks == "gates":
            return self.guard.gate(subject, prior, name=name)
        return self.guard.evaluate(subject, prior=prior, name=name)

    # ---- ways to ask

    def single(self):
        predictions, _ = self.entry("one", "metric")
        self.ask(predictions, self.prior(), "one")

    def model(self):
        _, model = self.entry("one", "model")
        self.ask(model, self.prior(), "one")

    def batch(self):
        names = [f"entry {place}" for place in range(int(self.draw.integers(1, 7)))]
        several = [self.entry(name, "metric")[0] for name in names]
        self.ask(list(several), [self.prior() for _ in names], names)

    def searched(self):
        names = [f"entry {place}" for place in range(int(self.draw.integers(1, 7)))]
        models = [self.entry(name, "model")[1] for name in names]
        priors = [self.prior() for _ in names]
        measured = [
            self.guard.measure(model, prior=prior, way="gate" if self.asks == "gates" else "evaluate")
            for model, prior in zip(models, priors, strict=True)
        ]
        answers, halted = [], None
        try:
            answers = self.ask(measured, priors, names)
        except (Halted, ModelError) as error:
            answers, halted = error.answers, error if isinstance(error, Halted) else None
        for name, answer in zip(names, answers, strict=False):
            unasked = answer is not None and answer.told == NOT_CERTIFIED
            assert unasked or (answer is None) == (self.expected[name][0] is not None)
        if halted is not None:
            raise halted

    def reveal(self):
        predictions, _ = self.entry("one", "metric")
        self.guard.reveal(predictions, prior=float(self.draw.uniform(0.1, 0.9)), name="one")

    def ended(self):
        names = ["one", "other"]
        for_all = [self.entry(name, "metric")[0] for name in names]
        self.expected["final"] = None
        self.guard.final(for_all, name="final")

    def chosen(self):
        several = [self.entry(f"candidate {place}", "metric")[0] for place in range(3)]
        self.guard.choose(list(several), self.draw.uniform(0.1, 0.9, 3), name="choice")

    def guarded(self):
        (new, _), (old, _) = self.entry("new", "metric"), self.entry("old", "metric")
        self.expected["both"] = (self.expected["new"][0] or self.expected["old"][0], self.expected["new"][1])
        rail = self.guard.on(self.metric.metric("rail"), allow={"vacuous"})
        self.guard.gate(new, 0.5, name="both", guardrails={rail: (old, 0.3)})

    def compared(self):
        (new, _), (old, _) = self.entry("new", "metric"), self.entry("old", "metric")
        (broken, ours), (too, theirs) = self.expected["new"], self.expected["old"]
        self.expected["difference"] = broken or too, ours - theirs
        self.guard.compare(new, old, prior=float(self.draw.uniform(-0.5, 0.5)), name="difference")


WAYS = {
    Player.single: PLANS,
    Player.model: PLANS,
    Player.batch: PLANS,
    Player.searched: PLANS,
    Player.reveal: ("all", "gates"),
    Player.chosen: ("all", "gates"),
    Player.ended: ("all", "gates"),
    Player.compared: ("all",),
    Player.guarded: ("all", "gates"),
}
GAMES = [(way, asks) for way, plans in WAYS.items() for asks in plans]


def price(guard, row):
    """Return the price of a failure by the codes of the theory."""
    theory = guard._view.ways.reveal.certificate.theory
    if row.way == "reveal":
        return theory.reveal.failure_nats
    if row.way == "final":
        return 0.0
    if "gate" in row.way or row.way == "guarded-gate":
        return theory.gate.failure_nats
    return None if row.way == "claim" else theory.charge.failure_nats


def check_choice(player, row):
    told = Told.parse(row.told)
    winner = told.winner
    every = [player.expected[f"candidate {place}"] for place in range(winner.candidates)]
    fails = [how is not None for how, _ in every]
    assert told.failed == any(fails)
    assert not fails[winner.candidate] or all(fails)
    if not any(fails):
        assert row.low - 1e-9 <= every[winner.candidate][1] <= row.high + 1e-9
    return int(any(fails)), row.nats


# ---- the attacks


def own_metric(fails):
    """A metric of the user's own that fails where it is told to."""

    def loss(y, predictions):
        if fails(y, predictions):
            raise ValueError(f"a private word: {y!r}")
        return predictions == y

    return Metric(name="own", loss=loss, **AGREEMENT)


@pytest.fixture
def gate(labels, closed_at_the_end):
    def make(ledger=None, X=None, **changes):
        given = {"gates": True, "queries": 40, "charges": 3, "noise": 0.0, "seed": 1} | changes
        return closed_at_the_end(made_guard(X, labels, ledger=ledger, vacuous=True, **given))

    return make


def test_a_gates_batch_certifies_nothing_wrong_where_one_entry_of_it_fails(gate, labels, ledger):
    rows = np.arange(len(labels))
    several = [labels, np.where(rows % 2, labels, 1 - labels), np.where(rows, labels, 1 - labels)]
    guard = gate(ledger, metric=own_metric(lambda y, predictions: (predictions == y).mean() < 0.6))
    with pytest.raises(ModelError, match="failed on the holdout for 1 of 3 entries") as caught:
        guard.gate(several, [0.5, 0.5, 0.9999])
    best, failed, no = caught.value.answers
    assert failed is None
    assert (best.told, best.charged, best.high) == ("yes", True, 1.0)
    assert (no.told, no.low) == ("no", 0.0)
    history = guard.history()
    assert history["told"].tolist() == ["yes", "failed", "no"]
    assert np.isnan(history.loc[1, ["value", "low", "high"]].astype(float)).all()
    assert guard.charges_left == 1
    again = refuses(ModelError, "", guard.gate, several, [0.5, 0.5, 0.9999])
    assert [one and one.replayed for one in again.answers] == [True, None, True]
    assert verify(ledger).problems == []


def test_a_batch_of_a_thousand_with_one_broken_entry_answers_all_others(gate, labels):
    wrong = np.arange(len(labels))
    several = [np.where(wrong < 900 + k, 1 - labels, labels) for k in range(1_000)]
    several[500] = 1 - labels
    guard = gate(queries=1_000, metric=own_metric(lambda y, predictions: not np.any(y == predictions)))
    caught = refuses(ModelError, "1 of 1000 entries", guard.gate, several, [0.9] * 1_000)
    answers = caught.answers
    assert [place for place, one in enumerate(answers) if one is None] == [500]
    assert {one.told for one in answers if one is not None} == {"no"}
    assert guard.history()["asked_at"].nunique() == 1
    assert (guard.charges_left, guard.queries_asked) == (2, 1_000)


@pytest.mark.parametrize("gates", [False, True])
def test_a_metric_that_always_fails_takes_no_more_than_the_charges_there_are(gate, labels, gates):
    broken = []
    guard = gate(gates=gates, metric=own_metric(lambda y, predictions: broken))
    broken.append(True)
    several = [np.roll(labels, k) for k in range(1, 6)]
    with pytest.raises(Halted) as halted:
        ask = guard.gate if gates else lambda some, prior: guard.evaluate(some, prior=prior)
        ask(several, [0.9] * 5)
    assert guard.history()["told"].tolist() == ["failed"] * 3
    assert halted.value.answers == [None] * 3
    assert (guard.queries_asked, guard.charges_left) == (3, 0)


# ---- whatever is raised


@for_each("error", RAISED)
@for_each("way", ["model", "metric", "batch", "reveal", "final", "choice"])
def test_whatever_is_raised_is_a_failure_that_is_paid_for_and_says_nothing(labels, error, way):
    y, X = labels.copy(), np.zeros((len(labels), 1))
    broken = []

    def fails(y_true, predictions):
        if broken:
            raise error(f"a private word: {y_true!r}")
        return False

    class Telling:
        def predict(self, rows):
            if len(rows) == len(y):
                raise error(f"a private word: {rows!r}")
            return np.zeros(len(rows), dtype=int)

    given = {"queries": 40, "charges": 3, "reveals": 1, "choices": [2], "vacuous": True}
    own = made_guard(X, y, metric=own_metric(fails), **given)
    broken.append(True)
    ask = {
        "model": lambda: own.evaluate(Telling(), prior=0.5),
        "metric": lambda: own.evaluate(y, prior=0.5),
        "batch": lambda: own.evaluate([y], prior=[0.5]),
        "reveal": lambda: own.reveal(y, prior=0.5),
        "final": lambda: own.final(y),
        "choice": lambda: own.choose([y, 1 - y], [0.5, 0.4]),
    }[way]
    caught = refuses(ModelError, "withheld", ask)
    assert "private word" not in str(caught)
    assert caught.__context__ is caught.__cause__ is None
    assert own.history()["told"].str.endswith("failed").all()
    assert own.history()["nats"].sum() > 0.0 or way == "final"


def test_an_interrupt_of_the_users_stays_one_and_nothing_is_asked(labels):
    class Slow:
        def predict(self, rows):
            if len(rows) == len(labels):
                signal.raise_signal(signal.SIGINT)
            return np.zeros(len(rows), dtype=int)

    guard = made_guard(np.zeros((len(labels), 1)), labels, queries=40, charges=3, vacuous=True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        refuses(KeyboardInterrupt, "", guard.evaluate, Slow(), prior=0.5)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert guard.queries_asked == 0


def test_what_a_metric_prints_and_warns_of_on_the_holdout_is_not_heard(labels, capsys):
    def noisy(y, predictions):
        sys.stdout.write(f"a private word {y}")
        warnings.warn(f"a private word {y}", RuntimeWarning, stacklevel=1)
        return False

    with warnings.catch_warnings(action="ignore"):  # of the trial, which says nothing of predictions
        guard = made_guard(None, labels, metric=own_metric(noisy), queries=40, charges=3, vacuous=True)
    capsys.readouterr()
    guard.evaluate(labels, prior=0.99)
    guard.evaluate([labels, 1 - labels], prior=[0.98, 0.1])
    assert capsys.readouterr() == ("", "")


# ---- metrics that come later


@for_each("kind", ["loss", "statistic"])
def test_a_metric_of_ones_own_that_fails_on_the_labels_is_opened_as_any_and_fails_when_it_is_asked(
    labels, kind
):
    """Were it refused, whoever words metrics well would read all labels out of refusals."""
    guard = made_guard(None, labels, queries=40, charges=3, noise=0.0, vacuous=True)
    given = {"lower": 0.0, "upper": 1.0, "greater_is_better": True, "response": "labels"}

    def reading(row, label):
        def loss(y, predictions):
            if y[row] == label:
                raise ValueError(f"a private word: {y!r}")
            return (y == predictions) + 0.0

        name = f"reads row {row} for {label}"
        if kind == "loss":
            return Metric(name=name, loss=loss, family="binomial", **given)
        differences = np.full(len(labels), 1 / len(labels))
        statistic = lambda y, predictions: float(np.mean(loss(y, predictions)))  # noqa: E731
        return Metric(
            name=name, statistic=statistic, differences=differences, family="bounded-difference", **given
        )

    made_up = np.arange(len(labels)) % 2  # that it fails on these is public, and refused
    row, other = (int(np.flatnonzero((labels == made_up) == same)[0]) for same in (False, True))
    refuses(ModelError, "", guard.on, reading(other, made_up[other]), allow={"vacuous"})
    one = guard.on(reading(row, labels[row]), allow={"vacuous"})
    refuses(ModelError, "withheld", one.evaluate, labels, prior=0.5)
    assert guard.history()["told"].iloc[-1] == "failed"
    plain = guard.on(reading(row, 9), allow={"vacuous"})
    assert plain.plan.tolerance == one.plan.tolerance  # what is public is the same


# ---- a thousand


@pytest.mark.parametrize("part", range(4))
def test_a_thousand_random_questions_say_failed_where_one_fails_and_the_truth_elsewhere(part):
    failures = dict.fromkeys(PLANS, 0)
    for number in range(part, 1000, 4):
        draw = np.random.default_rng(number)
        way, asks = GAMES[number // 4 % len(GAMES)]
        kinds = ("labels", "values", "statistic")
        if way is Player.compared:
            kinds = ("labels", "values")
        player = Player(asks, str(draw.choice(kinds)), draw)
        with suppress(ModelError, Halted):
            way(player)
        failures[asks] += check_history(player)
    assert min(failures.values()) > 5, failures


def check_history(player):
    """Compare each answer with what was computed by hand; the number of failures."""
    guard, failed, spent, told = player.guard, 0, 0.0, 0
    history = guard.history()
    history = history[history["way"] != "view"]
    if not history["name"].isin(["final"]).any():
        told = len(history)
        assert told > 0
    for row, place in zip(history.itertuples(), itertools.count()):
        if row.way == "choose":
            failed, spent = check_choice(player, row)
            continue
        if row.name == "final":
            how, truth = player.expected[("one", "other")[place]]
        else:
            how, truth = player.expected[row.name]
        if row.told == NOT_CERTIFIED:  # nothing was asked of the rows
            assert (row.low, row.high, row.charges_left) == (0.0, 1.0, 0)
            continue
        assert row.told.startswith(FAILED) == (how is not None), (row, how)
        spent += row.nats
        if how is None:
            assert row.low - 1e-9 <= truth <= row.high + 1e-9
            continue
        failed += 1
        assert math.isnan(row.value)
        assert math.isnan(row.low)
        assert math.isnan(row.high)
        own = price(guard, row)
        assert own is None or row.nats == pytest.approx(own)
        assert row.nats > 0.0 or row.way == "final"
        assert row.charged == (row.way not in {"reveal", "final"})
        assert row.nats <= max(guard._view.ways.main.certificate.charge_nats, price_of_reveal(guard)) + 1e-9
    assert guard._view.transcript.state.nats == pytest.approx(spent)
    return failed


def price_of_reveal(guard):
    return guard._view.ways.reveal.worst_nats()
