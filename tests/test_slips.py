"""The commonest slips of a user, on every public way in: each is told in plain words what to write instead."""

import inspect
import re
import traceback
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from cases import for_each, refuses
from made_guards import made_guard
from reusable_holdout_box import RemoteHoldout
from reusable_holdout_callbacks import LightGBMCallback, XGBoostCallback
from reusable_holdout_mlflow import best_run, register_certified, sync, track
from reusable_holdout_optuna import GuardCallback, GuardedStudy
from reusable_holdout_sklearn import GuardedSearchCV, guarded_cross_validate, guarded_scorer, prior_scorer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from reusable_holdout import Plan, ReusableHoldout, verify
from reusable_holdout.errors import InputError, PlanError
from reusable_holdout.guard import released
from reusable_holdout.misfits import closest, misfit
from reusable_holdout.slips import checked_call

ROWS = 400
WISH = {
    "queries": 40,
    "charges": 3,
    "threshold": 0.2,
    "noise": 0.0,
    "estimate": 0.7,
    "seed": 1,
    "vacuous": True,
}


class Scene:
    """A guard, a model, its predictions, and what they are made of."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(ROWS, 3))
        self.y = (self.X[:, 0] + rng.normal(size=ROWS) > 0).astype(int)
        self.model = LogisticRegression().fit(self.X, self.y)
        self.other = LogisticRegression(C=2.0).fit(self.X, self.y)
        self.predictions = self.model.predict(self.X)
        self.weights = np.ones(ROWS)
        self.weights[0] = 2
        self.guard = self.make()

    def make(self, **changes):
        given = {"X": self.X, "y": self.y, **WISH, **changes}
        return made_guard(given.pop("X"), given.pop("y"), **given)


@pytest.fixture(scope="module")
def scene():
    scene = Scene()
    yield scene
    assert scene.guard.answered == 0  # whatever was tried


# ---- arguments: of every way in, each that can be left out, misspelt or put where none belongs

ASKING = ["evaluate", "compare", "gate", "reveal", "choose", "final", "ask", "check_predictions"]
METHODS = [*ASKING, "on", "price", "rotate", "open", "history", "plot", "subscribe"]
CLASSES = [
    *(ReusableHoldout, Plan, GuardedSearchCV, RemoteHoldout),
    *(GuardedStudy, GuardCallback, XGBoostCallback, LightGBMCallback),
]
FUNCTIONS = [
    *(guarded_scorer, prior_scorer, guarded_cross_validate, verify, released),
    *(track, sync, best_run, register_certified),
]
REMOTE = ["evaluate"]
PLANNED = ["threshold_at", "half_width", "final_half_width", "honest_charges"]


def ways_in(scene):
    """Everything public that takes arguments, with the name that it has in words."""
    # whether a call fits is known before a server is asked
    remotes = [object.__new__(RemoteHoldout)]
    return [
        *((name, getattr(scene.guard, name)) for name in METHODS),
        *((name, getattr(remote, name)) for remote in remotes for name in REMOTE),
        *((name, getattr(scene.guard.plan, name)) for name in PLANNED),
        *((one.__name__, one) for one in [*CLASSES, *FUNCTIONS]),
    ]


def refused(call, *args, **kwargs):
    """Words of the refusal; they quote no argument, and nor does anything the error carries."""
    caught = refuses(InputError, "", call, *args, **kwargs)
    error, words = caught, str(caught)
    assert type(error) is InputError
    assert words.endswith(("nothing was asked", "nothing was made"))
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    kept = [value for frame in frames if frame.f_code.co_name == "call" for value in frame.f_locals.values()]
    assert "PRIVATE" not in words + "".join(map(repr, kept))
    return words


def test_every_argument_that_is_left_out_or_misspelt_or_not_named_is_told_in_plain_words(scene):
    tried = 0
    for name, call in ways_in(scene):
        parameters = inspect.signature(call).parameters.values()
        placed = [one.name for one in parameters if one.kind is one.POSITIONAL_OR_KEYWORD]
        named = [one.name for one in parameters if one.kind is one.KEYWORD_ONLY]
        needed = [one.name for one in parameters if one.default is one.empty]
        good = {word: f"PRIVATE {word}" for word in needed}
        for word in needed:
            without = {other: value for other, value in good.items() if other != word}
            words = refused(call, **without)
            assert re.match(rf"{name} needs {word}=?, which did not come; write {name}\(", words), words
            tried += 1
        for word in [*placed, *named]:
            if len(word) > 1:
                slip = word[: len(word) // 2] + word[len(word) // 2 - 1 :]  # a letter twice
                words = refused(call, **good, **{slip: "PRIVATE"})
                assert words.startswith(f"{name} has no argument {slip!r}; did you mean {word}=?"), words
                tried += 1
        words = refused(call, **good, zzz="PRIVATE")
        assert re.match(rf"{name} has no argument 'zzz'; it takes \w+", words), words
        if named:
            words = refused(call, *["PRIVATE"] * (len(placed) + 1))
            assert re.search(
                rf"by position and the rest by name; .*; write {name}\(.*{named[0]}=\.\.\.\)", words
            )
        if placed:
            words = refused(call, *["PRIVATE"] * len(placed), **{placed[0]: "PRIVATE"})
            assert words.startswith(
                f"{name} takes each argument once; got {placed[0]} by position and by name"
            )
    assert tried > 150


def test_a_method_that_is_called_on_the_class_says_so():
    for name in [*ASKING, "price"]:
        words = refused(getattr(ReusableHoldout, name), "PRIVATE")
        assert words.startswith(
            f"{name} must be called on an object; it was called on the class; make one first"
        )


def test_the_commonest_slips_read_well(scene):
    X, y, guard, p = scene.X, scene.y, scene.guard, scene.predictions
    assert refused(ReusableHoldout) == (
        "ReusableHoldout needs X, which did not come; write ReusableHoldout(X, tolerance=...); nothing was made"
    )
    assert refused(guard.gate, p) == (
        "gate needs at_least, which did not come; write gate(subject, at_least); nothing was asked"
    )
    assert refused(ReusableHoldout, X, y, policy="claims").startswith(
        "ReusableHoldout has no argument 'policy'; it takes X, y, metric=, plan=, "
    )
    assert refused(ReusableHoldout, X, y, queries=9, tolerence=0.1) == (
        "ReusableHoldout has no argument 'tolerence'; did you mean tolerance=?; nothing was made"
    )
    assert refused(guard.gate, p, 0.9, 0.1) == (
        "gate takes subject, at_least by position and the rest by name; got 3 by position; write "
        "gate(subject, at_least, tolerance=...); nothing was asked"
    )
    assert refused(guard.final, scene.model, prior=0.9) == (
        "final has no argument 'prior'; did you mean priors=?; nothing was asked"
    )


def test_a_type_error_inside_is_no_misfit_and_keeps_its_own_words():
    @checked_call
    def broken(value):
        return value + "text"

    refuses(TypeError, "unsupported operand", broken, 1)
    assert broken("some ") == "some text"
    assert misfit(broken, (1,), {}) is None


def test_what_takes_anything_by_name_or_position_has_no_unknown_argument():
    @checked_call
    def any_of(first, *more, **named):
        return first, more, named

    assert any_of(1, 2, three=3) == (1, (2,), {"three": 3})
    assert refused(any_of, anything="PRIVATE") == (
        "any_of needs first, which did not come; write any_of(first); nothing was asked"
    )


def test_nothing_is_meant_where_nothing_is_near():
    assert closest("zzz", ["rows", "tolerance"]) is None


# ---- containers: what is data is taken, whatever holds it; what is none is named


def two_chunks(values):
    return pa.chunked_array([pa.array(values[:100]), pa.array(values[100:])])


COLUMNS = {
    "a list": lambda y: y.tolist(),
    "a list of lists": lambda y: [[one] for one in y.tolist()],
    "a tuple": lambda y: tuple(y.tolist()),
    "a column": lambda y: y[:, None],
    "a Series with another index": lambda y: pd.Series(y, index=range(len(y), 0, -1)),
    "a frame of one column": lambda y: pd.DataFrame({"label": y}),
    "polars": pl.Series,
    "a polars frame": lambda y: pl.DataFrame({"label": y}),
    "pyarrow": pa.array,
    "pyarrow chunks": two_chunks,
    "a pyarrow table": lambda y: pa.table({"label": y}),
}


@for_each("wrap", COLUMNS.values(), ids=COLUMNS)
def test_columns_may_come_in_whatever_people_have(scene, wrap):
    y, p = scene.y, scene.predictions
    expected = scene.make(sample_weight=scene.weights).evaluate(p, prior=0.7)
    guard = scene.make(y=wrap(y), sample_weight=wrap(scene.weights), allow={"overlap"})
    if wrap is COLUMNS["a list of lists"]:  # of questions that is one for each row
        with pytest.raises(InputError, match=r"priors must have shape \(400,\), one for each question"):
            guard.evaluate(wrap(p), prior=0.7)
    else:
        assert guard.evaluate(wrap(p), prior=0.7) == expected
        assert guard.evaluate([wrap(p)], prior=wrap(np.array([0.7]))) == [expected._replace(replayed=True)]
    unfitted = LogisticRegression(C=0.1)
    assert guard.evaluate(unfitted, scene.X, wrap(y)) == guard.evaluate(unfitted, scene.X, y)._replace(
        replayed=False
    )


def test_text_in_pyarrow_is_text_and_what_is_missing_there_is_missing(scene):
    text = np.array(["no", "yes"])[scene.y]
    expected = scene.make(X=None, y=text).evaluate(text, prior=1.0)
    for wrap in (pa.array, two_chunks, lambda y: pa.array(y).dictionary_encode()):
        assert scene.make(X=None, y=wrap(text)).evaluate(wrap(text), prior=1.0) == expected
    refuses(InputError, "missing", scene.make, X=None, y=pa.array([None, *text[1:].tolist()]))
    refuses(InputError, "NaN", scene.guard.evaluate, pa.array([None, *scene.y[1:].tolist()]), prior=0.7)
    booleans = pa.array(scene.y.astype(bool))
    assert scene.make(y=booleans).final(booleans).value == 1.0


NAMES = list("abc")
TABLES = {
    "a list of lists": lambda X: X.tolist(),
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "a pyarrow table": lambda X: pa.table(dict(zip(NAMES, X.T, strict=True))),
    "a pyarrow batch": lambda X: pa.RecordBatch.from_pydict(dict(zip(NAMES, X.T, strict=True))),
}


@for_each("wrap", TABLES.values(), ids=TABLES)
def test_rows_may_come_in_whatever_people_have(scene, wrap):
    guard = scene.make(X=wrap(scene.X), allow={"overlap"})
    model = make_pipeline(StandardScaler(), LogisticRegression())
    answer = guard.evaluate(model, wrap(scene.X), scene.y)
    assert answer.value == pytest.approx(guard.final(model.fit(wrap(scene.X), scene.y)).value, abs=0.05)


def test_a_pyarrow_holdout_is_resumed_from_pandas_and_the_other_way_round(scene, tmp_path):
    frame = pd.DataFrame(scene.X, columns=NAMES)
    table, y = pa.Table.from_pandas(frame), pa.array(scene.y)
    with scene.make(X=table, y=y, ledger=tmp_path / "guard.db") as guard:
        guard.evaluate(scene.model, prior=0.7)
    with ReusableHoldout.open(tmp_path / "guard.db", frame, scene.y, seed=1) as again:
        assert again.evaluate(scene.model, prior=0.7).replayed


NO_DATA = {
    "dict": lambda y: dict(enumerate(y.tolist())),
    "set": lambda y: set(y.tolist()),
    "generator": lambda y: (one for one in y.tolist()),
    "map": lambda y: map(int, y),
    "text|not a path": lambda y: "labels.csv",
    "path": lambda y: Path("labels.csv"),
    "the class ndarray": lambda y: np.ndarray,
    "LazyFrame": lambda y: pl.LazyFrame({"label": y}),
    "LogisticRegression": lambda y: LogisticRegression(),
}
PLACES = {
    "y": lambda s, wrap: s.make(X=None, y=wrap(s.y)),
    "X": lambda s, wrap: s.make(X=wrap(s.y)),
    "sample_weight": lambda s, wrap: s.make(sample_weight=wrap(s.y)),
    "predictions": lambda s, wrap: s.guard.evaluate(wrap(s.y), prior=0.7),
    "one of many": lambda s, wrap: s.guard.evaluate([wrap(s.y)], prior=[0.7]),
    "to be revealed": lambda s, wrap: s.guard.reveal(wrap(s.y), prior=0.7),
    "one to choose from": lambda s, wrap: s.guard.choose([wrap(s.y)], [0.7]),
    "the final": lambda s, wrap: s.guard.final(wrap(s.y)),
    "compared": lambda s, wrap: s.guard.compare(s.y, wrap(s.y), prior=0.0),
    "X_train": lambda s, wrap: s.guard.evaluate(LogisticRegression(), wrap(s.y), s.y),
    "y_train": lambda s, wrap: s.guard.evaluate(LogisticRegression(), s.X, wrap(s.y)),
    "X_train of a reveal": lambda s, wrap: s.guard.reveal(LogisticRegression(), wrap(s.y), s.y),
    "y_train of a comparison": lambda s, wrap: s.guard.compare(s.model, s.other, s.X, wrap(s.y)),
}


MEANT = {  # what it is there, in other words: a list of one text is predictions, and what predicts is a model
    ("one of many", "text|not a path"): r"must be a number in \[0, 1\].*got \[0\.7\]",
    ("one to choose from", "text|not a path"): "must be among a list of candidates",
    ("compared", "the class ndarray"): "models and predictions cannot be asked about together",
    ("compared", "LogisticRegression"): "models and predictions cannot be asked about together",
}


@for_each("place", PLACES)
@for_each("came", NO_DATA)
def test_what_is_no_data_is_named_by_its_type_alone(scene, place, came):
    words = MEANT.get((place, came), f"(must|may) be .*({came}|got text)")
    caught = refuses(InputError, words, PLACES[place], scene, NO_DATA[came])
    assert type(caught) is InputError
    assert "labels.csv" not in str(caught)


# ---- models, names, numbers, shapes

UNFITTED = LogisticRegression()


def transposed(scene):
    """Two predictions of each row, where those of two models were meant."""
    return list(np.stack([scene.y, scene.y], axis=1))


OBJECT = r"must be an object; got the class LogisticRegression; make one with LogisticRegression\(\.\.\.\)"
FITTED = "must be fitted, or come with X_train and y_train.*got an unfitted LogisticRegression"
ONE_KIND = "models and predictions cannot be asked about together; got both; .*pass one kind"
CANDIDATES = "a choice must be among a list of candidates; got one subject; .*pass a list"
PLACED = r"a prior must be passed by its name.*write prior=\.\.\."
ALONE = "must come together; got X_train alone"
PERCENTAGE = r"a percentage\? write 0\.9"
SHAPE = r"must have shape \(400,\); got "
EACH_OF_ALL = (
    r"predictions\[0\]: .* must have shape \(400,\); got \(2,\); .*one entry for each model: transpose it"
)
FOR_EACH = r"priors must have shape \(400,\), one for each question; got \(2,\)"
NO_GUARD = r"guard must be a ReusableHoldout; got LogisticRegression.*make one with ReusableHoldout\(X, y"
SLIPS = [
    (OBJECT, lambda s: s.guard.evaluate(LogisticRegression, prior=0.7)),
    (OBJECT, lambda s: s.guard.evaluate(LogisticRegression, s.X, s.y)),
    (OBJECT, lambda s: s.guard.compare(LogisticRegression, s.model, s.X, s.y)),
    (OBJECT, lambda s: s.guard.reveal(LogisticRegression, prior=0.7)),
    (OBJECT, lambda s: s.guard.choose([s.model, LogisticRegression], [0.7, 0.7])),
    (OBJECT, lambda s: s.guard.final(LogisticRegression)),
    (FITTED, lambda s: s.guard.evaluate(UNFITTED, prior=0.7)),
    (FITTED, lambda s: s.guard.compare(s.model, UNFITTED, prior=0.0)),
    (FITTED, lambda s: s.guard.reveal(UNFITTED, prior=0.7)),
    (FITTED, lambda s: s.guard.choose([UNFITTED], [0.7])),
    (FITTED, lambda s: s.guard.final(UNFITTED)),
    (ONE_KIND, lambda s: s.guard.compare(s.model, s.predictions, prior=0.0)),
    (ONE_KIND, lambda s: s.guard.evaluate([s.model, s.predictions], prior=[0.7, 0.7])),
    (CANDIDATES, lambda s: s.guard.choose(s.model, [0.7])),
    (CANDIDATES, lambda s: s.guard.choose({"a": s.model}, [0.7])),
    (CANDIDATES, lambda s: s.guard.choose(s.predictions, [0.7])),
    (PLACED, lambda s: s.guard.evaluate(s.model, 0.9)),
    (PLACED, lambda s: s.guard.evaluate(s.model, np.float64(0.9))),
    (PLACED, lambda s: s.guard.evaluate(s.model, "cross-validation")),
    (PLACED, lambda s: s.guard.reveal(s.model, 0.9)),
    (PLACED, lambda s: s.guard.compare(s.model, s.other, 0.9)),
    (ALONE, lambda s: s.guard.evaluate(UNFITTED, s.X)),
    (ALONE, lambda s: s.guard.reveal(UNFITTED, s.X)),
    ("got y_train alone", lambda s: s.guard.evaluate(UNFITTED, y_train=s.y)),
    ("number of rows; got 400 and 5", lambda s: s.guard.evaluate(UNFITTED, s.X, s.y[:5])),
    ("number of rows; got 3 and 400", lambda s: s.guard.evaluate(UNFITTED, s.X.T, s.y)),
    ("a prior must be stated", lambda s: s.guard.evaluate(s.predictions)),
    ("a prior must be stated", lambda s: s.guard.evaluate([s.predictions])),
    ("a prior must be stated.*such as a cross-validated one", lambda s: s.guard.evaluate(s.model)),
    ("a prior must be a number in .*got '0.7'", lambda s: s.guard.evaluate(s.model, prior="0.7")),
    ("a prior must be a number in .*got '0.7'", lambda s: s.guard.reveal(s.model, prior="0.7")),
    ("a prior must be a number in .*got '0.1'", lambda s: s.guard.compare(s.model, s.other, prior="0.1")),
    ("in the catalogue; got 'acuracy'; did you", lambda s: s.make(metric="acuracy")),
    ("must be one of accuracy, average_precision,", lambda s: s.make(metric="bananas")),
    ("a prior.*got none", lambda s: s.guard.reveal(s.predictions)),
    ("did you mean 'accuracy'", lambda s: s.make(metric="acuracy")),
    ("did you mean 'f1_macro'", lambda s: s.make(metric="f1macro")),
    ("did you mean 'roc_auc'", lambda s: s.make(metric="auc")),
    ("did you mean 'neg_log_loss'", lambda s: s.make(metric="negative_log_loss")),
    ('got function; pass "accuracy"', lambda s: s.make(metric=accuracy_score)),
    (r'board must be "claims" or left out; got .claimes.', lambda s: s.make(board="claimes")),
    ("did you mean 'reveal'", lambda s: s.guard.price("revael")),
    ("way is one of evaluate, gate, reveal, choose, final; got 7", lambda s: s.guard.price(7)),
    (PERCENTAGE, lambda s: s.guard.evaluate(s.predictions, prior=90)),
    (PERCENTAGE, lambda s: s.guard.evaluate([s.predictions], prior=[90])),
    (PERCENTAGE, lambda s: s.guard.evaluate(s.model, prior=90.0)),
    (PERCENTAGE, lambda s: s.guard.reveal(s.predictions, prior=90)),
    (PERCENTAGE, lambda s: s.guard.choose([s.predictions], [90])),
    (PERCENTAGE, lambda s: s.guard.compare(s.predictions, s.y, prior=90)),
    (PERCENTAGE, lambda s: s.guard.price("reveal", prior=90)),
    (PERCENTAGE, lambda s: s.make(estimate=90)),
    (PERCENTAGE, lambda s: Plan(rows=1_000, queries=9, charges=1, confidence=90)),
    (r"\[0\.5, 1\),.*got 0\.05; did you mean 0\.95\?$", lambda s: s.make(confidence=0.05)),
    (r"did you mean 0\.99\?$", lambda s: Plan(rows=1_000, queries=9, charges=1, confidence=0.01)),
    (r"write 0\.05", lambda s: s.make(charges=None, threshold=None, tolerance=5)),
    ("prior.*range of accuracy; got -3;", lambda s: s.guard.evaluate(s.predictions, prior=-3)),
    (SHAPE + r"\(400, 3\); .*not the rows", lambda s: s.guard.evaluate(s.X, prior=0.7)),
    (SHAPE + r"\(400, 3\); .*not the rows", lambda s: s.guard.final(s.X)),
    (
        SHAPE + r"\(400, 2\); .*not predict_proba",
        lambda s: s.guard.evaluate(s.model.predict_proba(s.X), prior=0.7),
    ),
    (
        "as predict gives them, not probabilities",
        lambda s: s.guard.evaluate(s.model.predict_proba(s.X)[:, 1], prior=0.7),
    ),
    (SHAPE + r"\(5,\); predict every", lambda s: s.guard.evaluate(s.predictions[:5], prior=0.7)),
    (
        SHAPE + r"\(1, 400\); .*as a list to evaluate",
        lambda s: s.guard.evaluate(s.predictions[None], prior=0.7),
    ),
    (EACH_OF_ALL, lambda s: s.guard.evaluate(transposed(s), prior=[0.7] * ROWS)),
    (FOR_EACH, lambda s: s.guard.evaluate(transposed(s), prior=[0.7, 0.7])),
    (FOR_EACH, lambda s: s.guard.choose(transposed(s), [0.7, 0.7])),
    (
        r"\(400, 3\); got \(3, 400\); transpose it",
        lambda s: s.make(metric="log_loss", estimate=None, y=np.resize([0, 1, 2], ROWS)).evaluate(
            np.full((3, ROWS), 1 / 3), prior=1.0
        ),
    ),
    ("transpose X", lambda s: s.make(X=s.X.T)),
    ("rows come first, labels second", lambda s: s.make(X=s.y, y=s.X)),
    (NO_GUARD, lambda s: guarded_scorer(s.model)),
    (NO_GUARD, lambda s: prior_scorer(s.model)),
    (NO_GUARD, lambda s: guarded_cross_validate(s.model, s.X, s.y, s.model)),
    (NO_GUARD, lambda s: GuardedSearchCV(s.guard, s.model).fit(s.X, s.y)),
    ("got the class ReusableHoldout", lambda s: guarded_scorer(ReusableHoldout)),
    ("got the class ReusableHoldout", lambda s: prior_scorer(ReusableHoldout)),
    ("got the class ReusableHoldout", lambda s: guarded_cross_validate(s.model, s.X, s.y, ReusableHoldout)),
    (
        "got the class ReusableHoldout",
        lambda s: GuardedSearchCV(GridSearchCV(UNFITTED, {}), ReusableHoldout).fit(s.X, s.y),
    ),
    ("must have an estimator", lambda s: GuardedSearchCV(s.model, s.guard).fit(s.X, s.y)),
]


def test_a_plan_that_counts_other_rows_than_came_says_so(scene):
    few = np.arange(ROWS) % 4 == 0
    with pytest.raises(PlanError, match=r"; for roc_auc these 400 rows count as \d\d+$") as caught:
        scene.make(metric="roc_auc", y=few.astype(int), charges=None, threshold=None, tolerance=0.01)
    counted = int(str(caught.value).rsplit(" ", 1)[1])
    assert str(caught.value).startswith(f"no plan keeps {counted} rows")
    assert caught.value.nearest["rows"] > counted
    with pytest.raises(PlanError) as caught:
        scene.make(charges=None, threshold=None, tolerance=0.01)
    assert "count as" not in str(caught.value)


@for_each(("words", "act"), SLIPS, ids=[f"{place}: {words}" for place, (words, _) in enumerate(SLIPS)])
def test_other_slips_are_told_in_plain_words(scene, words, act):
    caught = refuses(InputError, words, act, scene)
    assert type(caught) is InputError
    assert "withheld" not in str(caught)
