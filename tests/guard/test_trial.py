"""What fails on whatever rows is refused, free, by public facts alone; what works on the rows is never in the way."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from cases import for_each, refuses
from made_guards import made_guard
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeRegressor

from reusable_holdout.errors import InputError, ModelError
from reusable_holdout.guard.trial import made_like

ROWS = 1_000
WISH = {
    "queries": 40,
    "charges": 3,
    "reveals": 2,
    "choices": [1],
    "estimate": 0.7,
    "seed": 1,
    "vacuous": True,
}


WAYS = (
    lambda guard, model: guard.evaluate(model, prior=0.5),
    lambda guard, model: guard.reveal(model, prior=0.5),
    lambda guard, model: guard.choose([model], [0.5]),
    lambda guard, model: guard.final(model),
)


def frame(seed=0, rows=ROWS):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, rows),
            "income": rng.lognormal(size=rows),
            "city": rng.choice(["Bonn", "Ulm", "Kiel"], rows),
            "kind": pd.Categorical(rng.choice(["x", "y"], rows)),
        }
    )


def labels(rows=ROWS):
    return np.arange(rows) % 2


def guard_of(X, y=None, **changes):
    return made_guard(X, labels() if y is None else y, **{**WISH, **changes})


def pipeline():
    columns = ColumnTransformer(
        [("words", OneHotEncoder(), ["city", "kind"]), ("numbers", StandardScaler(), ["age", "income"])]
    )
    return make_pipeline(columns, LogisticRegression())


class Predicting:
    """Does as it is told, with the rows; notes those that it was given."""

    def __init__(self, does):
        self.does, self.given = does, []

    def predict(self, X):
        self.given.append(len(X))
        return self.does(X)

    def __reduce__(self):
        return Predicting, (self.does,)


def raises(error):
    def does(X):
        raise error(X)

    return does


def booster(X):
    raise TypeError("Expecting data to be a DMatrix object, got: ", type(X))


# ---- refused


@for_each(
    ("does", "words"),
    [
        (booster, "TypeError: .*DMatrix"),
        (raises(lambda _: AttributeError("no attribute 'handle'")), "AttributeError: no attribute 'handle'"),
        (raises(lambda X: RuntimeError(f"object at {hex(id(X))}")), "RuntimeError: object at 0x"),
        (lambda _: None, "InputError"),
        (lambda X: np.full(len(X), 7), "InputError: predicted labels must be among the classes"),
        (lambda X: X["no such column"], "IndexError"),
        (raises(lambda _: SystemExit(3)), "SystemExit: 3"),
    ],
)
def test_what_fails_alike_on_whatever_rows_is_refused_in_its_own_words(does, words):
    guard, model = guard_of(np.zeros((ROWS, 3))), Predicting(does)
    for ask in WAYS:
        caught = refuses(InputError, f"(?s)with {words}.*nothing was charged", ask, guard, model)
        assert caught.__cause__ is None  # its frames hold what they hold
    assert ROWS not in model.given
    assert (guard.answered, guard.charges_left) == (0, 3)


def test_columns_that_the_holdout_does_not_have_cost_nothing():
    train = frame(1)
    guard = guard_of(frame().rename(columns={"income": "salary"}))
    model = pipeline().fit(train, labels())
    refuses(InputError, r"columns are missing: .'income'", guard.evaluate, model, prior=0.5)
    with pytest.raises(InputError, match="columns are missing"):  # rows of other columns are no stand-ins
        guard.evaluate(model, train, labels(), prior=0.5)
    named = LogisticRegression().fit(train[["age", "income"]], labels())
    refuses(InputError, "feature names", guard_of(frame()[["income", "age"]]).evaluate, named, prior=0.5)
    assert guard.answered == 0


def ending_in(predictions):
    """Predictions as models of other libraries give them, of probabilities 0.2 and 0.8 in turn."""
    return lambda X: predictions(np.where(np.arange(len(X)) % 2, 0.2, 0.8))


@for_each(
    ("model", "words"),
    [
        (Predicting(ending_in(lambda p: np.column_stack([1 - p, p]))), r"have shape .*not predict_proba"),
        (Predicting(ending_in(lambda p: np.column_stack([p, p, p]))), r"have shape .*not predict_proba"),
        (Predicting(ending_in(lambda p: p[:, None])), "as predict gives them, not probabilities"),
        (Predicting(ending_in(lambda p: p)), "as predict gives them, not probabilities"),
        (Predicting(ending_in(lambda p: p[:-1] > 0.5)), r"shape .64,.; got .63,."),
        (Predicting(lambda _: np.zeros(5_000)), r"shape .64,.; got .5000,."),
        (Predicting(lambda _: 1), r"shape .64,.; got .."),
        (Predicting(raises(lambda X: ValueError(f"shapes ({len(X)},3) and (4,)"))), r"shapes .64,3. and"),
        (Predicting(raises(lambda X: ValueError(f"{3 * len(X)} numbers do not fit 7"))), "192 numbers"),
        (LinearRegression().fit(np.eye(3), [0, 1, 1]), "among the classes 0, 1; got"),
        (DecisionTreeRegressor(max_depth=1).fit(np.eye(3), [0, 1, 2]), "among the classes 0, 1; got"),
        (KMeans(5, n_init=1, random_state=0).fit(np.linspace(-5, 5, 30).reshape(10, 3)), "among the classes"),
        (IsolationForest(random_state=0).fit(np.random.default_rng(0).normal(size=(99, 3))), "got -1"),
        (Predicting(lambda X: 1 + (np.asarray(X)[:, 0] > 0)), "among the classes 0, 1; got 2"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_list_of_classes_is_refused_before_it_can_end_a_project(model, words):
    guard = guard_of(np.zeros((ROWS, 3)))
    for ask in WAYS:
        refuses(InputError, f"(?s)made-up rows.*{words}.*nothing was charged", ask, guard, model)
    assert (guard.answered, guard.charges_left) == (0, 3)
    assert guard.final(labels()).value == 1.0


# ---- let through


@for_each("wrap", [lambda X: X, lambda X: pl.from_pandas(X.astype({"kind": str}))], ids=["pandas", "polars"])
def test_categories_that_made_up_rows_do_not_have_are_no_reason_to_refuse(wrap):
    train, guard = wrap(frame(1)), guard_of(wrap(frame()))
    model = pipeline().fit(train, labels())  # an unknown city is an error
    assert not guard.evaluate(model, prior=0.5).charged


def test_a_model_that_fails_by_values_goes_on_to_the_rows_and_pays():
    guard = guard_of(np.full((ROWS, 2), 5.0))

    def wants_fives(X):
        if not (np.asarray(X) == 5).all():
            raise ValueError(f"not five: {np.asarray(X)[0, 0]}")
        return np.ones(len(X), dtype=int)

    assert guard.evaluate(Predicting(wants_fives), prior=0.5).value == 0.5
    other = Predicting(raises(lambda X: ValueError(f"unknown: {np.asarray(X)[0]}")))
    refuses(ModelError, "one charge", guard.evaluate, other, prior=0.5)
    assert other.given[-1] == ROWS


def test_a_model_that_keeps_predictions_of_the_holdout_is_asked_whatever_rows_come():
    for kept in (np.zeros(ROWS), [0] * ROWS):
        assert (
            guard_of(np.zeros((ROWS, 3))).evaluate(Predicting(lambda _, kept=kept: kept), prior=0.5).value
            == 0.5
        )


def test_numbered_categories_that_made_up_rows_do_not_have_are_no_reason_to_refuse():
    codes = np.random.default_rng(0).integers(10, 20, (ROWS, 2))
    for X in (codes, codes.astype(float), pd.DataFrame(codes)):
        model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, labels())
        assert guard_of(X).evaluate(model, prior=0.5).query == 1


def test_labels_that_made_up_rows_alone_take_out_of_the_classes_are_let_through_by_training_rows():
    X = np.full((ROWS, 2), 0.5)
    rounds = Predicting(lambda X: np.rint(np.asarray(X)[:, 0]).astype(int))  # no class from 1.5 on
    with pytest.raises(InputError, match=r"fails on made-up rows with .*among the classes 0, 1; got"):
        guard_of(X).evaluate(rounds, prior=0.5)
    assert guard_of(X).evaluate(rounds, X[:100], labels(100), prior=0.5).value == 0.5


def test_a_model_that_names_its_classes_is_asked_whatever_it_makes_of_made_up_rows():
    rounds = Predicting(lambda X: np.rint(np.asarray(X)[:, 0]).astype(int))
    rounds.classes_ = np.array([0, 1])
    assert guard_of(np.full((ROWS, 2), 0.5)).final(rounds).value == 0.5


def test_training_rows_decide_where_made_up_ones_mislead():
    def fussy(X):
        if not (np.asarray(X) == 5).all():
            raise ValueError("outside the range of the training rows")
        return np.ones(len(X), dtype=int)

    guard, five = guard_of(np.full((ROWS, 2), 5.0)), np.full((10, 2), 5.0)
    refuses(InputError, "pass X_train and y_train", guard.evaluate, Predicting(fussy), prior=0.5)
    assert guard.evaluate(Predicting(fussy), five, labels(10), prior=0.5).value == 0.5
    assert guard.reveal(Predicting(fussy), five, labels(10), prior=0.5).low < 0.5
    assert guard.compare(Predicting(fussy), Predicting(fussy), five, labels(10), prior=0.0).value == 0.0


@for_each(
    "X",
    [
        scipy.sparse.csr_array(np.eye(ROWS, 3)),
        scipy.sparse.coo_matrix(np.eye(ROWS, 3)),
        np.zeros((ROWS, 3), np.float32),
        np.zeros((ROWS, 3), np.uint8),
        np.zeros((ROWS, 3), bool),
        np.zeros((ROWS, 3)).tolist(),
        frame()[["age", "income"]].astype({"age": "Int64", "income": "Float32"}),
        pl.from_pandas(frame()[["age", "income"]]).cast({"age": pl.Int16}),
    ],
    ids=lambda X: type(X).__name__,
)
def test_models_of_every_container_are_asked(X):
    model = LogisticRegression().fit(X, labels())
    assert guard_of(X).evaluate(model, prior=0.5).query == 1


def test_words_alone_are_rows_too():
    words = np.array(["one two", "three"] * (ROWS // 2), dtype=object)
    model = Predicting(lambda X: np.array([len(one.split()) % 2 for one in X]))
    for X in (words, words.tolist(), pd.Series(words, name="text")):
        assert guard_of(X).evaluate(model, prior=0.5).query == 1


# ---- what it is tried on


@for_each(
    ("one", "other"),
    [
        (frame(0), frame(5)),
        (frame(0), frame(0).assign(age=frame(0)["age"].where(frame(0)["age"] > 20))),  # one is missing
        (frame(0), frame(0).assign(kind=pd.Categorical(["secret"] * ROWS))),
        (np.array([["a", "b"]] * ROWS), np.array([["a", "a secret"]] * ROWS)),  # the longest word
        (np.zeros((ROWS, 2)), np.ones((ROWS, 2), dtype=int)),
        (pl.from_pandas(frame(0)[["age", "city"]]), pl.from_pandas(frame(5)[["age", "city"]])),
    ],
)
def test_stand_ins_hold_nothing_of_the_holdouts_values(one, other):
    made, again = list(made_like(one)), list(made_like(other))
    assert len(made) == 4
    for first, second in zip(made, again, strict=True):
        assert first is not None
        assert type(first) is type(second) is type(one)
        assert repr(first) == repr(second)
        assert str(getattr(first, "dtypes", getattr(first, "dtype", ""))) == str(
            getattr(second, "dtypes", getattr(second, "dtype", ""))
        )
    assert not any("secret" in repr(two) for two in again)


def test_a_model_that_has_read_the_rows_does_not_speak_of_them_on_made_up_ones():
    kept = []

    def remembers(X):
        kept.append(np.asarray(X)[0, 0])
        if len(kept) > 5:  # four made-up containers and the rows
            raise ValueError(f"first row was {kept[4]}")
        return np.ones(len(X), dtype=int)

    guard, model = guard_of(np.full((ROWS, 2), 271828.0)), Predicting(remembers)
    guard.evaluate(model, prior=0.5)
    assert kept[4:] == [271828.0]
    caught = refuses(ModelError, "", guard.evaluate, model, prior=0.51)
    assert "271828" not in str(caught)


def test_a_model_is_tried_once():
    guard, tried = guard_of(np.zeros((ROWS, 2)), classes=[0, 1, 2]), []

    def noted(X):
        tried.append(len(X))
        return X

    steps = make_pipeline(FunctionTransformer(noted), LinearRegression()).fit(np.eye(2), [0, 0])
    for prior in (0.5, 0.6):
        with contextlib.suppress(ModelError):  # numbers are no classes
            guard.evaluate(steps, prior=prior)
    assert tried == [2, 64, 3, 2, 16, ROWS, ROWS]  # its fit, a trial, and two questions


def test_a_type_that_cannot_be_made_up_is_no_reason_to_refuse():
    spans = pd.DataFrame({"span": pd.interval_range(0, ROWS)})
    assert list(made_like(spans)) == [None] * 4
    assert list(made_like(object())) == [None] * 4
    model = Predicting(lambda X: np.ones(len(X), dtype=int))
    assert guard_of(spans).evaluate(model, prior=0.5).value == 0.5


# ---- scikit-learn's warnings of feature names, which are public


def _named(rows, names=("a", "b")):
    return pd.DataFrame(np.random.default_rng(0).normal(size=(rows, 2)), columns=list(names))


@pytest.mark.parametrize(
    ("trained", "held", "words"),
    [
        (
            _named(50),
            _named(ROWS).to_numpy(),
            "X does not have valid feature names, but LogisticRegression was",
        ),
        (
            _named(50).to_numpy(),
            _named(ROWS),
            "X has feature names, but LogisticRegression was fitted without",
        ),
    ],
    ids=["a holdout without names", "a model without names"],
)
def test_scikit_learns_warnings_of_feature_names_are_heard_with_each_question(trained, held, words):
    first, second = (LogisticRegression(C=C).fit(trained, labels(50)) for C in (1.0, 2.0))
    guard, other = guard_of(held), guard_of(held, metric="zero_one_loss", another_budget=True)
    for one, model in [(guard, first), (guard, second), (other, first)]:
        with pytest.warns(UserWarning, match=words):
            one.evaluate(model, prior=0.5)


def test_where_warnings_are_errors_one_of_feature_names_does_not_refuse_the_question():
    model, guard = LogisticRegression().fit(_named(50), labels(50)), guard_of(_named(ROWS).to_numpy())
    assert guard.evaluate(model, prior=0.5).query == 1


def test_what_a_model_warns_of_the_holdouts_rows_is_not_heard(recwarn):
    def warns(X):
        said = "X has feature names, but Secret was fitted without feature names"
        warnings.warn("secret" if len(X) < ROWS else said, UserWarning, stacklevel=1)
        return np.ones(len(X), dtype=int)

    guard_of(np.zeros((ROWS, 2))).evaluate(Predicting(warns), prior=0.5)
    assert [str(one.message) for one in recwarn if "ecret" in str(one.message)] == []
