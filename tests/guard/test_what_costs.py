"""Charge only what tells: every way to ask, and all that leaves the ledger as it was to the byte."""

import contextlib
import sqlite3

import numpy as np
import pytest
from cases import for_each, refuses
from guard.counting import ROWS, Counting, Failing, Refusing, predictions
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout import Difference, ReusableHoldout, verify
from reusable_holdout.errors import Halted, HoldoutError, LedgerError, ModelError
from reusable_holdout.ways import table

ODD = np.arange(ROWS) % 2 == 1


class World:
    """A guard in a file with other views of its rows, and all that can be seen of it."""

    def __init__(self, place, *, queries=60, **changes):
        self.place, self.counting = place, Counting()
        settings = {
            "charges": 4,
            "estimate": 0.2,
            "seed": 1,
            "vacuous": True,
            "reveals": 4,
            "choices": [2] * 4,
        }
        labels = (np.arange(ROWS) >= 0.5 * ROWS).astype(int)
        rows = np.zeros((ROWS, 2))
        self.guard = made_guard(
            rows,
            labels,
            metric=self.counting.metric(),
            queries=queries,
            ledger=place,
            **{**settings, **changes},
        )
        self.board = made_guard(
            rows, labels, metric=self.counting.metric(), queries=queries, ledger=place.with_suffix(".board"),
            seed=1, board="claims", charges=changes.get("charges", 4), vacuous=True, another_budget=True,
        )  # fmt: skip
        self.rail = self.guard.on(sample_weight=ODD, name="odd", allow={"vacuous"})
        self.counting.measured = self.counting.predicted = 0

    def model(self, share):
        return self.counting.model(share)

    def seen(self):
        """All that an answer, a charge or a seal would change."""
        rows = []
        for place in (self.place, self.place.with_suffix(".board")):
            with sqlite3.connect(place) as ledger:
                rows += ledger.iterdump()
            ledger.close()
        return rows, verify(self.place), self.counting.used

    def close(self):
        self.guard.close()
        self.board.close()


@pytest.fixture
def world(tmp_path):
    made = []

    def make(**changes):
        made.append(World(tmp_path / f"{len(made)}.db", **changes))
        return made[-1]

    yield make
    for one in made:
        one.close()


# ---- every way to ask about a model that is off on |share - 0.5| of the rows

WAYS = {
    "evaluate": lambda w, s: w.guard.evaluate(w.model(s), prior=0.2),
    "evaluate_predictions": lambda w, s: w.guard.evaluate(predictions(s), prior=0.2),
    "evaluate_many": lambda w, s: w.guard.evaluate(
        [predictions(s), predictions(s + 0.001), predictions(s)], prior=[0.2, 0.2, 0.2]
    ),
    "claim": lambda w, s: w.board.evaluate(w.model(s), prior=0.2, series="a"),
    "claim of predictions": lambda w, s: w.board.evaluate(predictions(s), prior=0.2),
    "claims": lambda w, s: w.board.evaluate([predictions(s)] * 2, prior=[0.2] * 2),
    "guess": lambda w, s: w.guard.evaluate(w.model(s), prior=0.2, tolerance=0.3),
    "guesses": lambda w, s: w.guard.evaluate([predictions(s)] * 2, prior=[0.2] * 2, tolerance=[0.3] * 2),
    "compare": lambda w, s: w.guard.compare(w.model(s), w.model(0.5), prior=0.2),
    "compare_predictions": lambda w, s: w.guard.compare(predictions(s), predictions(0.5), prior=0.2),
    "reveal": lambda w, s: w.guard.reveal(w.model(s), prior=0.2),
    "reveal_predictions": lambda w, s: w.guard.reveal(predictions(s), prior=0.2),
    "choose": lambda w, s: w.guard.choose([w.model(s), w.model(s + 0.001)], [0.2, 0.2]),
    "choose_predictions": lambda w, s: w.guard.choose([predictions(s), predictions(s + 0.001)], [0.2, 0.2]),
    "gate": lambda w, s: w.guard.gate(w.model(s), 0.1),
    "gate's batch": lambda w, s: w.guard.gate([predictions(s)] * 2, [0.1] * 2),
    "gate of a difference": lambda w, s: w.guard.gate(Difference(w.model(s), w.model(0.5)), 0.0),
    "gate with guardrails": lambda w, s: w.guard.gate(w.model(s), 0.1, guardrails={w.rail: 0.1}),
    "gate with guardrails, of predictions": lambda w, s: w.guard.gate(
        predictions(s), 0.1, guardrails={w.rail: 0.1}
    ),
    "compare with guardrails": lambda w, s: w.guard.gate(
        Difference(w.model(s), w.model(0.5)), 0.0, guardrails={w.rail: 0.0}
    ),
    "compare with guardrails, of predictions": lambda w, s: w.guard.gate(
        Difference(predictions(s), predictions(0.5)), 0.0, guardrails={w.rail: 0.0}
    ),
    "slice": lambda w, s: w.rail.evaluate(w.model(s), prior=0.2),
    "failure": lambda w, s: fails(lambda: w.guard.evaluate(Failing(w.counting, s), prior=0.2)),
    "failed reveal": lambda w, s: fails(lambda: w.guard.reveal(Failing(w.counting, s), prior=0.2)),
    "failed choice": lambda w, s: fails(
        lambda: w.guard.choose([Failing(w.counting, s), Failing(w.counting, s + 0.1)], [0.2, 0.2])
    ),
}
FINALS = {
    "failed final": lambda w, s: fails(lambda: w.guard.final(Failing(w.counting, s))),
    "final": lambda w, s: w.guard.final(w.model(s)),
    "final_predictions": lambda w, s: w.guard.final(predictions(s)),
    "final of several": lambda w, s: w.guard.final([w.model(s), w.model(s + 0.01)]),
    "final of several predictions": lambda w, s: w.guard.final([predictions(s), predictions(s + 0.01)]),
    "final of several metrics": lambda w, s: w.guard.final(w.model(s), also=[w.rail]),
    "final of a slice": lambda w, s: w.rail.final(predictions(s), also=[w.guard]),
}


def fails(ask):
    """What is told of a model that fails on the holdout."""
    caught = refuses(ModelError, "", ask)
    return str(caught).split(" left;")[0].rsplit(",", 1)[0]


def told(answer):
    """What an answer says, whether it is said again or not."""
    answers = answer if isinstance(answer, list) else [answer]
    plain = [getattr(one, "answer", one) for one in answers]
    return [one if isinstance(one, str) else (one.value, one.low, one.high, one.query) for one in plain]


def again(world, way, before):
    """Ask again: the same is told, and nothing is seen to change; the ledger is sound."""
    seen = world.seen()
    assert seen[1].problems == []
    assert told(way(world, 0.7)) == told(before)
    assert world.seen() == seen


@for_each("way", WAYS | FINALS)
def test_a_replay_costs_nothing_and_reads_nothing(world, way):
    one = world()
    way = (WAYS | FINALS)[way]
    again(one, way, way(one, 0.7))


@pytest.mark.long(*GUARD)
@for_each("way", [way for way in WAYS if "claim" not in way])  # a board has charges of each series
@for_each("spent", ["charges", "queries", "final"])
def test_after_a_halt_replays_are_free_and_what_is_new_changes_nothing(world, way, spent):
    one = world(queries=8, charges=4 if spent == "queries" else 2, reveals=2, choices=[2])
    ask = WAYS[way]
    first = ask(one, 0.7)
    if spent == "final":
        one.guard.final(predictions(0.6))
    step = 0
    while one.guard.halt_reason is None:
        step += 1
        far = 0.9 if spent == "charges" else 0.2
        one.guard.evaluate(predictions(0.7 + step / ROWS), prior=far)
    assert one.guard.halt_reason == spent
    again(one, ask, first)
    seen = one.seen()
    caught = refuses(Halted, "", ask, one, 0.75)
    assert caught.reason == spent
    assert one.seen() == seen


@for_each("way", FINALS)
def test_after_a_final_another_changes_nothing(world, way):
    one = world()
    first = FINALS[way](one, 0.7)
    seen = one.seen()
    assert one.guard.halt_reason == "final"
    caught = refuses(Halted, "a final was given", FINALS[way], one, 0.75)
    assert "final(model) still" not in str(caught)
    assert one.seen() == seen
    again(one, FINALS[way], first)


@for_each("way", WAYS | FINALS)
def test_a_closed_guard_answers_nothing_and_reads_nothing(world, way):
    one = world()
    way = (WAYS | FINALS)[way]
    way(one, 0.7)
    seen = one.seen()
    one.close()
    for share in (0.7, 0.75):
        refuses(LedgerError, "closed", way, one, share)
    assert one.seen() == seen


def test_every_way_of_the_interface_is_asked_here(world):
    """A way that is added needs a row in these tables."""
    one, named = world(queries=400, charges=60, reveals=20, choices=[2] * 20), set()
    for ask in (WAYS | FINALS).values():
        with contextlib.suppress(Halted):
            ask(one, 0.55)
    for guard in (one.guard, one.board):
        named |= {way.replace("-", "_") for way in guard.history()["way"]} - {"view"}
    assert named == {way.replace("-", "_") for way in table.WAYS}


# ---- what is refused


class Wide:
    n_features_in_ = 3

    def predict(self, X):
        raise AssertionError


MODELS = [  # that cannot be asked about
    *(Counting, object(), Wide(), "model", None),
    "refusing",
]
GIVEN = [  # that are no predictions for the rows
    *(predictions(0.7)[:-1], predictions(0.7) + 0.5, np.full(ROWS, np.nan), predictions(0.7) + 7),
    *(np.array(["a"] * ROWS), None, 3, [predictions(0.7)] * 2, np.zeros((2, 3, ROWS))),
]
PRIORS = [2.0, -0.1, np.nan, "much", None, True, [0.2]]
NAMES = [3, b"name", "\ud800"]


def refused_models(w):
    good = w.model(0.71)
    for bad in MODELS:
        model = Refusing(w.counting, 0.7) if isinstance(bad, str) and bad == "refusing" else bad
        yield lambda m=model: w.guard.evaluate(m, prior=0.2)
        yield lambda m=model: w.board.evaluate(m, prior=0.2)
        yield lambda m=model: w.guard.gate(m, 0.1, guardrails={w.rail: 0.1})
        yield lambda m=model: w.guard.compare(good, m, prior=0.2)
        yield lambda m=model: w.guard.reveal(m, prior=0.2)
        yield lambda m=model: w.guard.choose([good, m], [0.2, 0.2])
        yield lambda m=model: w.guard.final(m)
        yield lambda m=model: w.guard.final([w.model(0.72), m])


def refused_predictions(w):
    good = predictions(0.71)
    for bad in GIVEN:
        yield lambda p=bad: w.guard.evaluate(p, prior=0.2)
        yield lambda p=bad: w.guard.evaluate([good, p], prior=[0.2, 0.2])
        yield lambda p=bad: w.guard.compare(good, p, prior=0.2)
        yield lambda p=bad: w.guard.reveal(p, prior=0.2)
        yield lambda p=bad: w.guard.choose([good, p], [0.2, 0.2])
        yield lambda p=bad: w.guard.gate(good, 0.1, guardrails={w.rail: (p, 0.1)})
        if not isinstance(bad, list):  # several finals are one
            yield lambda p=bad: w.guard.final(p)


def refused_words(w):
    good = predictions(0.71)
    for prior in PRIORS:
        yield lambda p=prior: w.guard.evaluate(good, prior=p)
        yield lambda p=prior: w.guard.evaluate(good, prior=p, tolerance=0.3)
        yield lambda p=prior: w.guard.gate(good, 0.1, guardrails={w.rail: p})
        yield lambda p=prior: w.guard.reveal(good, prior=p)
        yield lambda p=prior: w.board.evaluate(good, prior=p)
        if prior != -0.1:  # which is a difference
            yield lambda p=prior: w.guard.compare(good, predictions(0.5), prior=p)
        if prior != [0.2]:  # of several, a column is as good as a list
            yield lambda p=prior: w.guard.evaluate([good], prior=[p])
            yield lambda p=prior: w.guard.choose([good, predictions(0.72)], [p, p])
        if prior not in ("much", None):  # of models the words name a way to estimate it
            yield lambda p=prior: w.guard.evaluate(w.model(0.71), prior=p)
    for name in NAMES:
        yield lambda n=name: w.guard.evaluate(w.model(0.71), prior=0.2, name=n)
        yield lambda n=name: w.guard.evaluate([good], prior=[0.2], name=[n])
        yield lambda n=name: w.guard.compare(w.model(0.71), w.model(0.5), prior=0.2, name=n)
        yield lambda n=name: w.guard.reveal(w.model(0.71), prior=0.2, name=n)
        yield lambda n=name: w.guard.choose([w.model(0.71)], [0.2], name=n)
        yield lambda n=name: w.guard.final(w.model(0.71), name=n)
        yield lambda n=name: w.guard.gate(w.model(0.71), 0.1, name=n, guardrails={w.rail: 0.1})


def refused_otherwise(w):
    good, model = predictions(0.71), w.model(0.71)
    yield lambda: w.guard.evaluate(model)  # no prior, and no training rows
    yield lambda: w.guard.evaluate(model, prior="oracle")
    yield lambda: w.board.evaluate(model, prior=0.2, tolerance=0.3)
    yield lambda: w.guard.evaluate(model, prior=0.2, quickly=True)
    yield lambda: w.guard.evaluate(model, prior=0.2, guardrails={w.rail: 0.1})
    yield lambda: w.guard.evaluate(good, prior=0.2, tolerance=1e-6)
    yield lambda: w.board.compare(good, predictions(0.5), prior=0.2)
    yield lambda: w.board.gate(good, 0.2)
    yield lambda: w.guard.evaluate(good, prior=0.2, series="a")
    yield lambda: w.guard.gate(model, 0.1, guardrails={w.guard: 0.1})
    yield lambda: w.guard.gate(model, 0.1, guardrails={})
    for series in (3, None, b"a", "\ud800"):
        yield lambda s=series: w.board.evaluate(model, prior=0.2, series=s)
        yield lambda s=series: w.board.evaluate([good], prior=[0.2], series=s)
    yield lambda: w.guard.choose([], [])
    yield lambda: w.guard.choose(None, [0.2])
    yield lambda: w.guard.choose(model, [0.2])
    yield lambda: w.guard.choose([good, predictions(0.5)], 0.2)
    yield lambda: w.guard.choose([good, predictions(0.5)], None)
    yield lambda: w.guard.compare(good, predictions(0.5), prior=-1.5)
    yield lambda: w.guard.final([good, good[:5]])
    yield lambda: w.guard.choose([model], [0.2, 0.3])
    yield lambda: w.guard.evaluate(list([good] * 2), prior=[0.2])
    yield lambda: w.guard.evaluate([good], prior=[0.2], name=["a", "b"])
    yield lambda: w.guard.evaluate(
        [predictions(0.5 + i / ROWS) for i in range(70)], prior=[0.2] * 70
    )  # of 60 queries
    yield lambda: w.guard.choose([predictions(0.5 + i / ROWS) for i in range(70)], [0.2] * 70)
    yield lambda: w.guard.final(model, also=[w.place])
    yield lambda: w.guard.final([])
    yield lambda: w.guard.on("no such metric")
    yield lambda: w.guard.on(sample_weight=[1.0, 2.0])
    yield lambda: w.guard.on(tolerance=1e-6)
    yield lambda: w.guard.on(where=ODD, sample_weight=ODD)
    yield lambda: w.guard.on(sample_weight=~ODD, name=3, allow={"vacuous"})


REFUSED = [refused_models, refused_predictions, refused_words, refused_otherwise]


@pytest.mark.long(*GUARD)
@for_each("refusals", REFUSED, ids=lambda one: one.__name__)
@for_each("after", ["a question", "charges", "a final"])
def test_what_is_refused_changes_nothing_and_reads_nothing(world, refusals, after):
    one = world(charges=2)
    one.guard.evaluate(one.model(0.7), prior=0.2)
    if after == "charges":
        for share in (0.9, 0.91):
            one.guard.evaluate(predictions(share), prior=0.1)
        assert one.guard.halted
    elif after == "a final":
        one.guard.final(one.model(0.6))
    before, bodies = one.seen(), list(refusals(one))
    assert len(bodies) > 20
    for place, refused in enumerate(bodies):
        with pytest.raises((HoldoutError, Halted)) as caught:
            refused()
            pytest.fail(f"number {place} was answered")
        if after == "a question":
            assert not isinstance(caught.value, Halted | ModelError), (place, caught.value)
        assert one.seen() == before, (place, caught.value)


# ---- batches, views and other doors


def test_a_batch_across_a_halt_answers_and_pays_up_to_it_and_its_rest_costs_nothing(world):
    one = world(charges=2)
    batch = [predictions(share) for share in (0.7, 0.9, 0.7, 0.91, 0.71, 0.72)]
    caught = refuses(Halted, "", one.guard.evaluate, list(batch), prior=[0.2, 0.1, 0.2, 0.1, 0.2, 0.2])
    assert [answer.replayed for answer in caught.answers] == [False, False, True, False]
    assert (one.guard.queries_asked, one.guard.charges_left) == (3, 0)
    before = one.seen()
    caught = refuses(Halted, "", one.guard.evaluate, list(batch), prior=[0.2, 0.1, 0.2, 0.1, 0.2, 0.2])
    assert [answer.replayed for answer in caught.answers] == [True] * 4
    assert one.seen() == before


def test_a_view_that_was_opened_before_is_opened_again_for_nothing_also_after_a_halt(world):
    one = world()
    one.guard.final(one.model(0.7))
    before = one.seen()
    for _ in range(2):
        assert one.guard.on(sample_weight=ODD, allow={"vacuous"}).view == one.rail.view
        assert one.rail.on(sample_weight=np.ones(ROWS), allow={"vacuous"}).view == one.guard.view
        refuses(Halted, "", one.guard.on, sample_weight=~ODD, allow={"vacuous"})
    assert one.seen() == before


def test_a_guard_that_is_opened_or_made_again_finds_all_as_it_was(world):
    one = world()
    answer = one.guard.evaluate(one.model(0.7), prior=0.2)
    before = one.seen()
    labels = (np.arange(ROWS) >= 0.5 * ROWS).astype(int)
    other = ReusableHoldout.open(one.place, np.zeros((ROWS, 2)), labels, metric=one.counting.metric(), seed=1)
    other.close()
    with pytest.raises(HoldoutError):
        ReusableHoldout.open(one.place, np.ones((ROWS, 2)), labels, metric=one.counting.metric(), seed=1)
    assert one.guard.evaluate(one.model(0.7), prior=0.2) == answer._replace(replayed=True)
    assert one.seen() == before


def test_prices_widths_and_history_cost_nothing(world):
    one = world()
    before = one.seen()
    for kind in ("evaluate", "gate", "reveal", "choose", "final"):
        assert one.guard.price(kind, candidates=3) == one.guard.price(kind, candidates=3)
    assert len(one.guard.history()) == 1
    assert one.guard.final_width > 0
    assert "charges left" in repr(one.guard)
    assert one.seen() == before
