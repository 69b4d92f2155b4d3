"""Before anything is in the ledger, all that is said is the same for all labels: of equal shape, dtype and classes.

So it is for all real targets of equal shape and dtype, whatever bounds they keep to. Every entry point that takes
labels is played here for many label vectors. The world ends at its first commit, where the class counts are told and
paid for; whatever was printed, warned of, logged or raised until then must be the same, to the byte, and so must be
whether it comes to a commit.
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
from reusable_holdout_box.folder import make_box
from reusable_holdout_evals.gate.gate import make_gate
from reusable_holdout_evals.inspect import new_guard
from reusable_holdout_leaderboard.competition.competition import Competition
from reusable_holdout_leaderboard.rules import Rules

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import HoldoutError, LedgerError, ModelError
from reusable_holdout.ledger import Ledger, Transaction
from reusable_holdout.metrics import (
    Metric,
    fbeta,
    mae,
    matthews_corrcoef,
    mse,
    negated,
    precision,
    quantile_loss,
    r2,
    rmse,
)
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
def world_ends(monkeypatch):
    """Nothing is ever committed."""

    def end(*_, **__):
        raise FirstCommitError("the first commit")

    def patched():
        patch = pytest.MonkeyPatch()
        patch.setattr(Ledger, "create", end)
        patch.setattr(Transaction, "append", end)
        patch.setattr(Transaction, "rotate", end)
        return patch

    @contextlib.contextmanager
    def ended():
        patch = patched()
        try:
            yield
        finally:
            patch.undo()

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
    "accuracy",
    "balanced_accuracy",
    "f1_macro",
    "f1_weighted",
    "recall_macro",
    "roc_auc_ovr",
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


def _telling(labels):
    """Differences that would tell the count in every way there is."""
    count = int((labels == 1).sum())
    _tell(count)
    if count in {17, 60, 133}:
        raise SystemExit(count)
    return _counting(labels)


def _tell(number):
    print(number)  # noqa: T201
    warnings.warn(str(number), UserWarning, stacklevel=1)
    logging.getLogger("told").warning("%s", number)


def _recalled(name, differences):
    return Metric(
        name=name,
        response="labels",
        lower=0,
        upper=1,
        greater_is_better=True,
        family="bounded-difference",
        statistic=lambda labels, told: float(np.mean(labels == told)),
        differences=differences,
    )


OWN = [
    Metric(name="own_loss", response="labels", lower=0, upper=1, greater_is_better=False, loss=_own_loss),
    _recalled("own_recall", _counting),
    _recalled("telling", _telling),
    fbeta(beta=2),
    precision(floor=0.3),
    matthews_corrcoef(floor=0.4),
]
WISHES = [
    {"tolerance": 0.1},
    {"tolerance": 0.2},
    {"charges": 2},
    {"charges": 1, "queries": 5, "vacuous": True},
    {"charges": 1, "tolerance": 0.24},
    {"tolerance": 0.2, "threshold": 0.05},
    {"charges": 1, "noise_scale": 0.001, "vacuous": True},
    {"charges": 2, "policy": "gate"},
    {"charges": 2, "policy": "ladder", "vacuous": True},
    {"charges": 1, "policy": "claims"},
    {"charges": 2, "reveals": 2, "choices": [10]},
    {"tolerance": 0.24, "charges": 1, "mechanism": "target-charging", "noise_scale": 0.001},
]
GUESSES = [None, 0.5, 0.3, 0.05, 0.99]


def same(tell, labels=None):
    """Fail unless it says the same for all labels; what it said."""
    found = [tell(y) for y in (vectors() if labels is None else labels)]
    assert found == [found[0]] * len(found)
    return found[0]


def constructed(y, **settings):
    return said(lambda: ReusableHoldout(settings.pop("X", None), y, **(PLAN | settings)))


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
        return said(lambda: ReusableHoldout(FEATURES, y, **given), ledger)

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
                lambda users, w=wish: constructed(labels, metric=metric, groups=users, **w),
                sizes,
            )
            same(lambda y, w=wish: constructed(y, metric=metric, groups=USERS, **w))


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
        given = PLAN | {"ledger": ledger, "classes": [0, 1]} | ({} if ledger is None else {"witness": False})
        with registry_of_its_own():
            guard = ReusableHoldout(None, y, charges=2, reveals=3, **given)
            other = ReusableHoldout(FEATURES, y, metric="f1", charges=1, vacuous=True, classes=[0, 1], **PLAN)
            pair = np.arange(ROWS) < 2
            with world_ends():
                yield said(lambda: guard.rotate(None, 1 - y, early=True, vacuous=True), ledger)
                for wish, guess in itertools.product(WISHES[:4], GUESSES[:4]):
                    new = wish | {"metric": metric, "prevalence": guess, "replan": True}
                    yield said(lambda new=new: ReusableHoldout(None, y, **(given | new)), ledger)
                    view = {"tolerance": wish.get("tolerance"), "prevalence": guess, "estimate": 0.8}
                    yield said(lambda view=view: guard.on(metric, **view), ledger)
                    yield said(
                        lambda view=view: guard.on(metric, sample_weight=pair, vacuous=True, **view), ledger
                    )
                    yield said(lambda view=view: guard.on(metric, policy="gate", **view), ledger)
                yield said(
                    lambda: other.rotate(
                        -FEATURES, y, early=True, prevalence=0.3, tolerance=0.2, charges=None
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
            guard = ReusableHoldout(None, first, metric=metric, charges=1, vacuous=True, **PLAN)
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


@for_each("metric", ["accuracy", "recall", "specificity", "brier", "log_loss", "f1", "roc_auc"])
def test_a_gate_says_the_same(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        with world_ends():
            for wish in ({"queries": 20, "tolerance": 0.2}, {"queries": 20, "tolerance": 0.01}):
                make = lambda wish=wish: make_gate(  # noqa: E731
                    labels.with_name("gate.db"),
                    labels,
                    id_column="id",
                    metric=metric,
                    seed=1,
                    witness=False,
                    **wish,
                )
                yield said(make, labels.parent)

    found = [list(asked(y, number)) for number, y in enumerate(vectors())]
    assert all(one == found[0] for one in found)


@for_each("metric", ["accuracy", "recall", "f1", "roc_auc", "f1_macro"])
def test_a_box_says_the_same(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        with world_ends():
            for wish in ({"tolerance": 0.2}, {"tolerance": 0.05, "prevalence": 0.3}, {"charges": 1}):
                make = lambda wish=wish: make_box(  # noqa: E731
                    labels.parent / "box", labels, id_column="id", metric=metric, seed=1, queries=40, **wish
                )
                yield said(make, labels.parent)

    found = [list(asked(y, number)) for number, y in enumerate(vectors())]
    assert all(one == found[0] for one in found)


@for_each("metric", ["accuracy", "recall", "f1", "roc_auc", "f1_macro"])
def test_a_board_says_the_same(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        rules = Rules(slug="one", title="One", metric=metric, id_column="id", queries=40, charges=1)
        with world_ends():
            return said(lambda: Competition.create(labels.parent / "board", rules, labels), labels.parent)

    found = [asked(y, number) for number, y in enumerate(vectors())]
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


# ---- real targets

BOUND = 10.0
BOUNDED = {
    "mae": mae,
    "mse": mse,
    "rmse": rmse,
    "rmse above a floor": lambda **b: rmse(floor=0.2 * (b["upper"] - b["lower"]), **b),
    "quantile_loss": lambda **b: quantile_loss(quantile=0.9, **b),
    "r2 of a variance": lambda **b: r2(variance=(b["upper"] - b["lower"]) ** 2 / 20, **b),
    "r2 about a centre": lambda **b: r2(center=(b["lower"] + b["upper"]) / 2, **b),
    "neg_mean_absolute_error": lambda **b: negated(mae(**b)),
    "neg_mean_squared_error": lambda **b: negated(mse(**b)),
    "neg_root_mean_squared_error": lambda **b: negated(rmse(**b)),
    "neg_quantile_loss": lambda **b: negated(quantile_loss(**b)),
}
OVER_OUTPUTS = ["mae", "mse", "quantile_loss", "neg_mean_absolute_error"]


def reals():
    """Targets of the same dtype and shape: within the bounds, at them, one a little or far outside, all outside."""
    rng = np.random.default_rng(2)
    inside = rng.uniform(0, BOUND, ROWS)
    yield inside
    yield np.where(np.arange(ROWS) % 2, 0.0, BOUND)
    for wild in (np.nextafter(BOUND, 11), -1e-9, 37.5, 1e300, -1e300):
        yield np.where(np.arange(ROWS) == 123, wild, inside)
    yield np.full(ROWS, 5.0)
    yield np.zeros(ROWS)
    yield 10.0 + inside
    yield rng.standard_cauchy(ROWS)


def _of_targets(name, loss, lower=0.0, upper=1.0):
    return Metric(name=name, lower=lower, upper=upper, greater_is_better=False, loss=loss)


def _raises(y, p):
    if y.max() > 7:
        raise ValueError(f"{y.max()}")
    return np.abs(y - p) * 0.1


def _tells(y, p):
    _tell(y.max())
    return np.abs(y - p) * 0.1


def _leaves(y, p):
    if y.min() < 0:
        raise SystemExit(f"{y.min()}")
    return np.zeros(len(y))


def _of_differences(name, differences):
    return Metric(
        name=name,
        lower=0,
        upper=1,
        greater_is_better=True,
        statistic=lambda y, p: float(np.mean(np.abs(y - p) < 1)),
        differences=differences,
    )


OWN_OF_TARGETS = [
    _of_targets("gain", lambda y, p: y * np.sign(p), -0.2, 0.2),
    _of_targets("outside", lambda y, p: y + p),
    _of_targets("no number", lambda y, p: np.sqrt(-1.0 - np.abs(y))),
    _of_targets("percentage", lambda y, p: np.minimum(np.abs(y - p) / y, 1.0)),
    _of_targets("logarithms", lambda y, p: np.minimum(np.abs(np.log(y) - np.log(p)), 1.0)),
    _of_targets("logits", lambda y, p: np.abs(np.log(y / (1 - y)) - np.log(p / (1 - p))), 0, 5),
    _of_targets("deviance", lambda y, p: 2.0 * (y * np.log(y / p) - y + p), 0, 20),
    _of_targets("raises", _raises),
    _of_targets("tells", _tells),
    _of_targets("leaves", _leaves),
    _of_targets("of another shape", lambda y, p: np.zeros(len(y) if y.max() < 8 else 3)),
    _of_differences("largest", lambda y: np.full(len(y), (1e-9 + np.abs(y).max()) / len(y))),
    _of_differences("negative", lambda y: y / len(y)),
]


def of_reals(metric):
    """Wishes in the metric's unit."""
    span = metric.upper - metric.lower
    middle = {"estimate": (metric.lower + metric.upper) / 2, "metric": metric}
    yield middle | {"tolerance": 0.24 * span}
    yield middle | {"charges": 2}
    yield middle | {"charges": 1, "spread": 0.1 * span}
    yield middle | {"charges": 1, "queries": 5, "vacuous": True, "policy": "gate"}
    yield middle | {"charges": 1, "vacuous": True, "noise_scale": 0.001 * span}
    yield middle | {"charges": 2, "vacuous": True, "policy": "ladder"}
    yield middle | {"charges": 1, "vacuous": True, "policy": "claims"}


def everything_said_of_reals(metric, targets=None, **more):
    targets = list(reals()) if targets is None else targets
    heard = {
        same(lambda y, w=wish: constructed(y, **(w | more)), targets).raised for wish in of_reals(metric)
    }
    assert any(words.startswith("FirstCommitError") for words in heard)


@for_each("metric", BOUNDED)
def test_bisection_of_the_bound_finds_nothing_of_the_largest_target(world_ends, metric):
    """Guess after guess would tell it to the last digit, free, if targets outside were refused, or warned of."""

    def found(y):
        low, high = 0.0, 100.0
        for _ in range(40):
            guess = (low + high) / 2
            made = BOUNDED[metric](lower=-100.0, upper=guess)
            heard = constructed(
                y, metric=made, charges=1, vacuous=True, estimate=(made.lower + made.upper) / 2
            )
            low, high = (low, guess) if heard.raised.startswith("FirstCommitError") else (guess, high)
        return low

    largest = [37.515, 1.25, 98.75]
    targets = [np.r_[np.linspace(0, 1, ROWS - 1), one] for one in largest]
    with world_ends():
        assert len({found(y) for y in targets}) == 1


@for_each("metric", BOUNDED)
def test_the_constructor_says_the_same_of_real_targets(world_ends, metric):
    chosen = BOUNDED[metric](lower=0, upper=BOUND)
    with world_ends():
        everything_said_of_reals(chosen)
        same(lambda y: constructed(y, metric=chosen, sample_weight=np.arange(ROWS) % 3, charges=1), reals())
        same(lambda y: constructed(y, metric=chosen, groups=USERS, charges=1, vacuous=True), reals())
        for bounds in ((-1e149, 1e149), (1.0, 1.0), (0, np.inf), (-3.0, -2.0), (37.4, 37.5)):
            same(
                lambda y, b=bounds: said(
                    lambda: ReusableHoldout(
                        None,
                        y,
                        metric=BOUNDED[metric](lower=b[0], upper=b[1]),
                        charges=1,
                        queries=40,
                        vacuous=True,
                    )
                ),
                reals(),
            )


@for_each("metric", OVER_OUTPUTS)
def test_the_constructor_says_the_same_of_several_targets_of_a_row(world_ends, metric):
    several = [np.stack([one, other], axis=1) for one, other in itertools.pairwise(reals())]
    with world_ends():
        everything_said_of_reals(BOUNDED[metric](lower=0, upper=BOUND), several)


@for_each("dtype", ["int64", "float32", "object", "bool"])
def test_other_kinds_of_real_targets_say_the_same(world_ends, dtype):
    inside = np.random.default_rng(3).integers(0, 2, ROWS)
    targets = [inside, 1 - inside, np.zeros(ROWS), *([] if dtype == "bool" else [11 * inside, -inside])]
    with world_ends():
        everything_said_of_reals(
            mae(lower=0, upper=BOUND), [np.asarray(one).astype(dtype) for one in targets]
        )


@for_each("metric", OWN_OF_TARGETS, ids=lambda metric: metric.name)
def test_a_metric_of_ones_own_of_real_targets_says_the_same(world_ends, metric):
    with world_ends():
        heard = {same(lambda y, w=wish: constructed(y, **w), reals()).raised for wish in of_reals(metric)}
    assert any("FirstCommitError" in words for words in heard)


@for_each("metric", ["mae", "rmse", "r2 about a centre"])
def test_a_file_features_and_ids_change_nothing_of_that(world_ends, metric, tmp_path):
    numbers = itertools.count()
    chosen = BOUNDED[metric](lower=0, upper=BOUND)

    def in_a_file(y):
        ledger = tmp_path / f"{metric}{next(numbers)}.db"
        wish = {"metric": chosen, "charges": 1, "vacuous": True, "queries": 40, "seed": 1}
        return said(lambda: ReusableHoldout(FEATURES, y, ledger=ledger, ids=np.arange(ROWS), **wish), ledger)

    with world_ends():
        assert same(in_a_file, reals()).raised.startswith("FirstCommitError")


ALL_OF_TARGETS = [*(made(lower=0, upper=BOUND) for made in BOUNDED.values()), *OWN_OF_TARGETS]


@pytest.mark.long(*GUARD)
@for_each("place", ["memory", "file"])
@for_each(
    "metric",
    [one for one in ALL_OF_TARGETS if one.name in {"mae", "r2", "gain", "raises", "tells", "largest"}],
    ids=lambda metric: f"{metric.name} {dict(metric.parameters)}",
)
def test_guards_of_real_targets_say_the_same(world_ends, metric, place, tmp_path):
    """A guard that was made looks the same; so do opening it, other bounds, another plan and other rows."""
    span, numbered = metric.upper - metric.lower, {one: at for at, one in enumerate(ALL_OF_TARGETS)}
    low = np.arange(ROWS) < 100  # without the row that lies outside

    def asked(y, number):
        ledger = None if place == "memory" else tmp_path / f"{numbered[metric]}-{number}.db"
        given = {"ledger": ledger, "metric": metric, "queries": 40, "charges": 2, "vacuous": True, "seed": 1}
        given |= {} if ledger is None else {"witness": False}
        with registry_of_its_own():
            made = []
            yield said(lambda: made.append(ReusableHoldout(None, y, **given)), ledger)
            (guard,) = made
            prices = [guard.price(kind) for kind in ("evaluate", "reveal", "choose", "final")]
            yield repr(guard), guard._repr_html_(), str(guard.plan), guard.plan.record(), prices
            with world_ends():
                for upper, (name, of_bounds) in itertools.product((1.0, 9.99, 40.0), BOUNDED.items()):
                    other = of_bounds(lower=0, upper=upper)
                    yield said(lambda other=other: guard.on(other, vacuous=True), ledger)
                    yield said(lambda o=other: guard.on(o, sample_weight=low, vacuous=True), ledger)
                    if name == "mae":
                        yield said(
                            lambda o=other: ReusableHoldout(None, y, **(given | {"metric": o})), ledger
                        )
                        new = given | {"metric": other, "replan": True}
                        yield said(lambda new=new: ReusableHoldout(None, y, **new), ledger)
                for other in OWN_OF_TARGETS:
                    yield said(lambda other=other: guard.on(other, vacuous=True, policy="gate"), ledger)
                for more in ({"vacuous": True}, {"tolerance": 0.2 * span}, {"tolerance": 1e-3 * span}):
                    yield said(lambda more=more: guard.rotate(None, y[::-1] * 2, early=True, **more), ledger)
            guard.close()
            if ledger is not None:
                kept = {"key": ledger.with_name(f"{ledger.name}.key")}
                for rows, own in itertools.product((y, y + 1.0, y * 100.0), (metric, ALL_OF_TARGETS[0])):
                    opened = said(
                        lambda rows=rows, own=own: ReusableHoldout.open(
                            ledger, None, rows, metric=own, **kept
                        ).close(),
                        ledger,
                    )
                    yield opened

    numbers = itertools.count()
    targets = [y + 0.125 for y in reals()]  # so that no two that are opened are the same rows
    found = [list(asked(y, next(numbers))) for y in targets]
    for one in found:
        assert one == found[0]
    assert any("FirstCommitError" in one.raised for one in found[0] if isinstance(one, Said))


@for_each("metric", ["mae", "mse"])
def test_a_gate_of_real_targets_says_the_same(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        with world_ends():
            for bounds in ((0.0, BOUND), (-1.0, 1.0), (0.0, 37.4), (0.0, 1e6), (1.0, 0.0)):
                span = (bounds[1] - bounds[0]) ** (2 if metric == "mse" else 1)
                make = lambda b=bounds, span=span: make_gate(  # noqa: E731
                    labels.with_name("gate.db"),
                    labels,
                    id_column="id",
                    metric=metric,
                    bounds=b,
                    seed=1,
                    witness=False,
                    queries=20,
                    tolerance=0.4 * abs(span),
                    spread=0.1 * abs(span),
                )
                yield said(make, labels.parent)

    found = [list(asked(y, number)) for number, y in enumerate(reals())]
    assert all(one == found[0] for one in found)
    assert [one.raised.startswith("FirstCommitError") for one in found[0]] == [True] * 4 + [False]


@for_each("metric", ["mae", "mse", "rmse"])
def test_a_box_of_real_targets_says_the_same(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        with world_ends():
            for bounds in ((0.0, BOUND), (-1.0, 1.0), (0.0, 37.4), (1.0, 0.0)):
                make = lambda b=bounds: make_box(  # noqa: E731
                    labels.parent / "box",
                    labels,
                    id_column="id",
                    metric=metric,
                    bounds=b,
                    seed=1,
                    queries=40,
                    charges=1,
                    vacuous=True,
                )
                yield said(make, labels.parent)

    found = [list(asked(y, number)) for number, y in enumerate(reals())]
    assert all(one == found[0] for one in found)
    assert [one.raised.startswith("FirstCommitError") for one in found[0]] == [True] * 3 + [False]


@for_each("metric", ["mae", "mse", "rmse", "quantile_loss", "r2"])
def test_a_board_of_real_targets_says_the_same_of_labels_and_fresh_labels(world_ends, metric, tmp_path):
    def asked(y, number):
        labels = _csv(tmp_path / f"{metric}{number}", y)
        fresh = labels.with_name("fresh.csv")
        pd.DataFrame({"id": np.arange(ROWS, 2 * ROWS), "label": y[::-1]}).to_csv(fresh, index=False)
        with world_ends():
            for upper in (1.0, 37.4, 1e6):
                more = {"variance": upper**2 / 10} if metric == "r2" else {}
                rules = Rules(
                    slug="one",
                    title="One",
                    metric=metric,
                    metric_parameters={"lower": 0.0, "upper": upper} | more,
                    also=("rmse",) if metric == "mae" else ("mae",),
                    id_column="id",
                    queries=40,
                    charges=1,
                    vacuous=True,
                )
                board = labels.parent / "board"
                for of_fresh in ({}, {"fresh_labels_file": fresh}):
                    yield said(
                        lambda b=board, r=rules, f=of_fresh: Competition.create(b, r, labels, **f),
                        labels.parent,
                    )

    found = [list(asked(y, number)) for number, y in enumerate(reals())]
    assert all(one == found[0] for one in found)
    assert found[0][1].raised.startswith("FirstCommitError")


@for_each("metric", BOUNDED)
def test_missing_infinite_and_misshapen_targets_are_refused_for_they_are_public(metric):
    chosen = BOUNDED[metric](lower=0, upper=BOUND)
    inside = next(reals())
    for y in (
        np.where(np.arange(ROWS) == 5, np.nan, inside),
        np.where(np.arange(ROWS) == 5, np.inf, inside),
        inside.astype(str),
        inside.reshape(ROWS // 2, 2, 1),
        inside[:0],
    ):
        assert constructed(y, metric=chosen, charges=1, vacuous=True).raised.startswith("InputError")


# ---- afterwards


@for_each("metric", ["recall", "specificity", "roc_auc", "f1_macro", "matthews_corrcoef"])
def test_what_is_told_at_the_first_commit_is_priced_and_the_guard_is_made_whatever_it_is(metric, tmp_path):
    for number, y in enumerate(vectors(declared=True)):
        for wish in WISHES[:4]:
            found = constructed(y, metric=metric, classes=[0, 1], **wish)
            assert found.raised.startswith(("<ReusableHoldout", "PlanError"))
        ledger = tmp_path / f"{metric}{number}.db"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            guard = ReusableHoldout(
                None,
                y,
                metric=metric,
                ledger=ledger,
                classes=[0, 1],
                witness=False,
                vacuous=True,
                charges=1,
                **PLAN,
            )
        assert guard.plan.shared.told_before >= guard._view.counts.nats > 1.0
        guard.close()
        assert verify(ledger).sound


@for_each("metric", BOUNDED)
def test_what_is_told_is_the_error_of_the_clipped_targets_whatever_they_are(metric, tmp_path):
    chosen = BOUNDED[metric](lower=0, upper=BOUND)
    predictions = np.random.default_rng(4).uniform(0, BOUND, ROWS)
    for number, y in enumerate(reals()):
        truth = chosen.measure(np.clip(y, 0, BOUND), predictions)
        ledger = tmp_path / f"{metric}{number}.db"
        given = {"metric": chosen, "queries": 5, "charges": 2, "reveals": 1, "vacuous": True, "seed": 1}
        with ReusableHoldout(None, y, ledger=ledger, witness=False, **given) as guard:
            answer = guard.reveal_predictions(predictions, prior=truth)
            assert answer.low <= truth <= answer.high
            last = guard.final_predictions(predictions)
            assert last.value == pytest.approx(truth, abs=1e-8 * (chosen.upper - chosen.lower))
            assert last.low <= truth <= last.high
        assert verify(ledger).sound


def test_a_loss_of_ones_own_that_fails_on_the_targets_fails_when_it_is_asked_and_takes_a_charge():
    few, wild = np.linspace(0, 5, ROWS), np.linspace(-10, 10, ROWS)
    for name in ("raises", "leaves", "of another shape"):
        (metric,) = (one for one in OWN_OF_TARGETS if one.name == name)
        given = {"metric": metric, "queries": 5, "charges": 2, "vacuous": True, "seed": 1}
        guard = ReusableHoldout(None, few, **given)
        guard.evaluate_predictions(few, prior=0.01)
        assert guard.charges_left == 2
        guard = ReusableHoldout(None, wild, **given)
        with pytest.raises(ModelError, match="took one charge"):
            guard.evaluate_predictions(few, prior=0.01)
        assert guard.charges_left == 1
