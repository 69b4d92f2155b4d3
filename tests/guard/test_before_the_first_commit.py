"""Before anything is in the ledger, all that is said is the same for all labels: of equal shape, dtype and classes.

Every entry point that takes labels is played here for many label vectors. The world ends at its first commit, where the
class counts are told and paid for; whatever was printed, warned of, logged or raised until then must be the same, to
the byte, and so must be whether it comes to a commit.
"""

import contextlib
import io
import itertools
import json
import logging
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from cases import for_each
from long_tests import GUARD
from made_guards import made_guard
from reusable_holdout_box.folder import make_box
from reusable_holdout_evals.gate.gate import make_gate
from reusable_holdout_evals.inspect import new_guard
from reusable_holdout_leaderboard.competition.competition import Competition
from reusable_holdout_leaderboard.rules import Rules

from reusable_holdout import Rows, verify
from reusable_holdout.errors import HoldoutError, LedgerError
from reusable_holdout.ledger.storage import Ledger, Transaction
from reusable_holdout.metrics import Metric, fbeta, matthews_corrcoef, precision
from reusable_holdout.registry import registry_of_its_own

ROWS = 400
FEATURES = np.random.default_rng(0).normal(size=(ROWS, 3))
USERS = np.repeat(np.arange(100), 4)
PLAN = {"queries": 40, "seed": 1, "estimate": 0.8}


def vectors(classes=2, declared=False):
    """Label vectors of the same dtype and classes, from one row of a class to all alike but a few; shuffled."""
    rng = np.random.default_rng(1)
    for positives in (1, 3, 17, 60, 133, 200, 277, 390, 398):
        labels = np.zeros(ROWS, dtype=np.int64)
        labels[:positives] = 1 + np.arange(positives) % (classes - 1)
        labels[-classes:] = np.arange(classes)  # each class has a row
        yield rng.permutation(labels)
    if declared:  # then a class may have none
        yield np.zeros(ROWS, dtype=np.int64)
        yield np.ones(ROWS, dtype=np.int64)


class FirstCommitError(LedgerError):
    """The world ends here."""


@pytest.fixture
def world_ends():
    """Nothing is ever committed."""

    def end(*_, **__):
        raise FirstCommitError("the first commit")

    @contextlib.contextmanager
    def ended():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Ledger, "create", end)
            patch.setattr(Transaction, "append", end)
            patch.setattr(Transaction, "rotate", end)
            yield

    return ended


class Said(NamedTuple):
    printed: str
    warned: list
    logged: list
    raised: str


class _Records(logging.Handler):
    def __init__(self):
        super().__init__(level=0)
        self.records = []

    def emit(self, record):
        self.records.append(record.getMessage())


def said(ask, place=""):
    """All that an attempt says; the name of the folder it is made in is left out."""
    out, records = io.StringIO(), _Records()
    logging.getLogger().addHandler(records)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(out),
        ):
            warnings.simplefilter("always")
            try:
                raised = repr(ask())
            except HoldoutError as error:
                nearest = json.dumps(getattr(error, "nearest", None))
                raised = f"{type(error).__name__}: {error} {nearest} {error.__cause__} {error.__context__}"
    finally:
        logging.getLogger().removeHandler(records)
    words = [f"{one.category.__name__}: {one.message}".replace(str(place), "") for one in caught]
    return Said(out.getvalue(), words, records.records, raised.replace(str(place), ""))


# ---- metrics, wishes and guesses

BINARY = [
    *("f1", "precision", "recall", "specificity", "jaccard", "average_precision", "roc_auc", "accuracy"),
    *("balanced_accuracy", "f1_macro", "f1_weighted", "precision_macro", "recall_macro", "matthews_corrcoef"),
    *("log_loss", "brier", "roc_auc_ovr"),
]
OF_THREE = [
    *("accuracy", "balanced_accuracy", "f1_macro", "f1_weighted", "recall_macro", "roc_auc_ovr"),
    "log_loss",
]


def _counting(labels):
    """Differences as a user may declare them, by class counts."""
    return np.where(labels == 1, 1.0 / np.maximum((labels == 1).sum(), 1), 0.0) + 1e-9


def _own_loss(labels, predictions):
    """A loss that fails for some class counts."""
    if (labels == 1).sum() in (17, 60, 133):
        raise ValueError("told")
    return (labels != predictions) * 1.0


OWN = [
    Metric(name="own_loss", response="labels", lower=0, upper=1, greater_is_better=False, loss=_own_loss),
    Metric(
        name="own_recall",
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="bounded-difference",
        statistic=lambda labels, told: float(np.mean(labels == told)),
        differences=_counting,
    ),
    fbeta(beta=2),
    precision(floor=0.3),
    matthews_corrcoef(floor=0.4),
]
WISHES = [
    *({"tolerance": 0.1}, {"tolerance": 0.2}, {"charges": 2}),
    *({"charges": 1, "queries": 5, "vacuous": True}, {"charges": 1, "tolerance": 0.24}),
    *({"tolerance": 0.2, "threshold": 0.05}, {"charges": 1, "noise": 0.001, "vacuous": True}),
    *({"charges": 2, "gates": True}, {"charges": 1, "board": "claims"}),
    {"charges": 2, "reveals": 2, "choices": [10]},
]
GUESSES = [None, 0.5, 0.3, 0.05, 0.99]


def same(tell, labels=None):
    """Fail unless it says the same for all labels; what it said."""
    found = [tell(y) for y in (vectors() if labels is None else labels)]
    assert found == [found[0]] * len(found)
    return found[0]


def constructed(y, **settings):
    return said(lambda: made_guard(settings.pop("X", None), y, **(PLAN | settings)))


@pytest.mark.timeout(900)  # some thousand plans and guards of each metric
@pytest.mark.long(*GUARD)
@for_each("metric", [*BINARY, *OWN])
def test_the_constructor_says_the_same(world_ends, metric):
    heard = set()
    with world_ends():
        for wish, guess in itertools.product(WISHES, GUESSES):
            heard.add(
                same(lambda y, w=wish, g=guess: constructed(y, metric=metric, prevalence=g, **w)).raised
            )
    assert any(words.startswith("FirstCommitError") for words in heard)


@for_each("metric", OF_THREE)
def test_the_constructor_says_the_same_of_three_classes(world_ends, metric):
    with world_ends():
        for wish, guess in itertools.product(WISHES[:4], [None, [0.2, 0.3, 0.5], {0: 0.9, 1: 0.05, 2: 0.05}]):
            same(lambda y, w=wish, g=guess: constructed(y, metric=metric, prevalence=g, **w), vectors(3))


@for_each("metric", [*BINARY, *OWN])
def test_with_stated_classes_not_even_whether_all_of_them_have_rows_is_told(world_ends, metric):
    with world_ends():
        for wish, guess in itertools.product(WISHES[:4], GUESSES[:3]):
            same(
                lambda y, w=wish, g=guess: constructed(y, metric=metric, classes=[0, 1], prevalence=g, **w),
                vectors(declared=True),
            )


@for_each("metric", BINARY)
def test_a_slice_of_two_rows_does_not_tell_whether_their_labels_are_alike(world_ends, metric):
    pair = np.arange(ROWS) < 2
    with world_ends():
        same(lambda y: constructed(y, metric=metric, sample_weight=pair, charges=1, vacuous=True))


@for_each("metric", ["accuracy", "f1", "recall", "roc_auc", "f1_macro"])
def test_features_ids_and_a_file_change_nothing(world_ends, metric, tmp_path):
    copied, numbers = np.concatenate([FEATURES[:200], FEATURES[:200]]), itertools.count()

    def in_a_file(y):
        ledger = tmp_path / f"{metric}{next(numbers)}.db"
        given = PLAN | {"metric": metric, "ledger": ledger, "charges": 1, "vacuous": True}
        return said(lambda: made_guard(FEATURES, y, **given), ledger)

    with world_ends():
        same(in_a_file)
        found = same(
            lambda y: constructed(y, X=copied, metric=metric, ids=np.arange(ROWS), charges=1, vacuous=True)
        )
    assert "exactly the features" in found.warned[0]


@for_each("metric", ["accuracy", "brier", "log_loss"])
def test_sizes_of_groups_are_not_told_either(world_ends, metric):
    sizes = [
        USERS,
        np.repeat(np.arange(100), np.r_[np.full(50, 1), np.full(50, 7)]),
        np.r_[np.arange(99), [99] * 301],
    ]
    assert {len(np.unique(one)) for one in sizes} == {100}
    labels = np.arange(ROWS) % 2
    with world_ends():
        for wish in WISHES[:4]:
            same(
                lambda users, w=wish: constructed(labels, metric=metric, groups=users, largest_group=5, **w),
                sizes,
            )
            same(lambda y, w=wish: constructed(y, metric=metric, groups=USERS, largest_group=5, **w))


# ---- guards that exist


@pytest.mark.long(*GUARD)
@for_each(
    "metric", ["f1", "recall", "specificity", "roc_auc", "f1_macro", "matthews_corrcoef", "average_precision"]
)
@for_each("place", ["memory", "file"])
def test_rotating_replanning_and_another_metric_say_the_same(world_ends, metric, place, tmp_path):
    """A guard of accuracy, whose own commit tells nothing, goes on to other rows, another plan or another metric."""

    def asked(y, number):
        ledger = None if place == "memory" else tmp_path / f"{metric}{number}.db"
        given = (
            PLAN | {"ledger": ledger, "classes": [0, 1]} | ({} if ledger is None else {"unwitnessed": True})
        )
        with registry_of_its_own():
            guard = made_guard(None, y, charges=2, reveals=3, **given)
            other = made_guard(FEATURES, y, metric="f1", charges=1, vacuous=True, classes=[0, 1], **PLAN)
            pair = np.arange(ROWS) < 2
            with world_ends():
                yield said(lambda: guard.rotate(None, 1 - y, early=True, allow={"vacuous"}), ledger)
                for wish, guess in itertools.product(WISHES[:4], GUESSES[:4]):
                    new = wish | {"metric": metric, "prevalence": guess, "replan": True}
                    yield said(lambda new=new: made_guard(None, y, **(given | new)), ledger)
                    view = {"tolerance": wish.get("tolerance"), "prevalence": guess, "estimate": 0.8}
                    yield said(lambda view=view: guard.on(metric, **view), ledger)
                    yield said(
                        lambda view=view: guard.on(metric, sample_weight=pair, **view, allow={"vacuous"}),
                        ledger,
                    )
                yield said(
                    lambda: other.rotate(
                        Rows(-FEATURES, y, prevalence=0.3), early=True, tolerance=0.2, charges=None
                    )
                )

    numbers = itertools.count()
    found = [list(asked(y, next(numbers))) for y in vectors(declared=True)]
    assert all(one == found[0] for one in found)
    assert any(one.raised.startswith("FirstCommitError") for one in found[0])
    assert any(one.raised.startswith("PlanError") for one in found[0])


@for_each("metric", ["recall", "roc_auc", "f1_macro"])
def test_rotating_a_guard_whose_metric_rests_on_counts_says_the_same(world_ends, metric, tmp_path):
    first = np.arange(ROWS) % 2

    def asked(y):
        with registry_of_its_own():
            guard = made_guard(None, first, metric=metric, charges=1, vacuous=True, **PLAN)
            with world_ends():
                return [
                    said(lambda more=more: guard.rotate(None, y, early=True, **more))
                    for more in (
                        {"vacuous": True},
                        {"tolerance": 0.2},
                        {"tolerance": 0.1, "prevalence": 0.3},
                        {"charges": 3, "prevalence": 0.01},
                        {"sample_weight": np.arange(ROWS) < 2, "vacuous": True},
                    )
                ]

    same(asked)


# ---- gates, boxes, boards and tasks


def _csv(folder, y):
    folder.mkdir()
    path = folder / "labels.csv"
    pd.DataFrame({"id": np.arange(ROWS), "label": y}).to_csv(path, index=False)
    return path


def _gates(labels, metric):
    settings = {"id_column": "id", "metric": metric, "seed": 1, "witness": False, "queries": 20}
    for tolerance in (0.2, 0.01):
        yield lambda t=tolerance: make_gate(labels.with_name("gate.db"), labels, tolerance=t, **settings)


def _boxes(labels, metric):
    settings = {"id_column": "id", "metric": metric, "seed": 1, "queries": 40}
    for wish in ({"tolerance": 0.2}, {"tolerance": 0.05, "prevalence": 0.3}, {"charges": 1}):
        yield lambda wish=wish: make_box(labels.parent / "box", labels, **settings, **wish)


def _boards(labels, metric):
    rules = Rules(slug="one", title="One", metric=metric, id_column="id", queries=40, charges=1)
    yield lambda: Competition.create(labels.parent / "board", rules, labels)


@for_each("makes", [_gates, _boxes, _boards])
@for_each("metric", ["accuracy", "recall", "specificity", "brier", "log_loss", "f1", "f1_macro", "roc_auc"])
def test_a_gate_a_box_and_a_board_say_the_same(world_ends, metric, makes, tmp_path):
    found = []
    for number, y in enumerate(vectors()):
        labels = _csv(tmp_path / f"{makes.__name__}{metric}{number}", y)
        with world_ends():
            found.append([said(make, labels.parent) for make in makes(labels, metric)])
    assert all(one == found[0] for one in found)


def test_rows_that_are_judged_elsewhere_have_no_labels_to_tell(world_ends):
    from inspect_ai.dataset import Sample

    with world_ends():
        for target in ("0", "1"):
            samples = [Sample(id=number, input="?", target=target) for number in range(300)]
            found = said(
                lambda samples=samples: new_guard(samples, ledger=None, queries=20, tolerance=0.2, seed=0)
            )
            assert found.raised.startswith("FirstCommitError")


def test_scores_have_none_either(world_ends, tmp_path):
    with world_ends():
        found = said(
            lambda: make_gate(tmp_path / "g.db", ids=list(map(str, range(600))), queries=20, tolerance=0.2)
        )
    assert "FirstCommitError" in found.raised


# ---- afterwards


@for_each("metric", ["recall", "specificity"])
def test_what_is_told_at_the_first_commit_is_priced_and_the_guard_is_made_whatever_it_is(metric, tmp_path):
    for number, y in enumerate(vectors(declared=True)):
        for wish in WISHES[:4]:
            found = constructed(y, metric=metric, classes=[0, 1], **wish)
            assert found.raised.startswith(("<ReusableHoldout", "PlanError"))
        ledger = tmp_path / f"{metric}{number}.db"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guard = made_guard(
                None,
                y,
                metric=metric,
                ledger=ledger,
                classes=[0, 1],
                unwitnessed=True,
                vacuous=True,
                charges=1,
                **PLAN,
            )
        assert guard.plan.shared.told_before >= guard._view.facts.counts.nats > 1.0
        guard.close()
        assert verify(ledger).sound
