"""A holdout in Parquet files or Dask is the same holdout, and its rows are never in memory together."""

import os
import pickle
import threading
import warnings

import joblib
import numpy as np
import pandas as pd
import pytest
from cases import refuses
from guard.chunk_models import MARK, Predicting, always_no, fails_late, leaves, quotes, talks
from sklearn.linear_model import LinearRegression, LogisticRegression

from reusable_holdout import ParquetRows, ReusableHoldout
from reusable_holdout.errors import (
    Halted,
    HoldoutError,
    InputError,
    LedgerMismatchError,
    ModelError,
    OverlapError,
)
from reusable_holdout.guard.chunks.parquet import _together
from reusable_holdout.metrics import mae
from reusable_holdout.metrics.containers import CodedLabels

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pa = pytest.importorskip("pyarrow")
da = pytest.importorskip("dask.array")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 3_000


@pytest.fixture(scope="module")
def frame():
    """Numbers and whole numbers, and labels that they tell with some noise."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 3)), columns=["a", "b", "c"])
    frame["whole"] = rng.integers(-5, 5, ROWS)
    frame["label"] = np.where(frame.a + rng.normal(size=ROWS) > 0, "yes", "no")
    return frame


@pytest.fixture(scope="module")
def model(frame):
    return LogisticRegression().fit(frame.drop(columns="label")[:400], frame.label[:400])


@pytest.fixture(scope="module")
def files(frame, tmp_path_factory):
    """The frame in two files of five and three row groups."""
    folder = tmp_path_factory.mktemp("holdout")
    frame[:1_300].to_parquet(folder / "part0.parquet", row_group_size=300)
    frame[1_300:].to_parquet(folder / "part1.parquet", row_group_size=700)
    return folder


@pytest.fixture
def parquet(files):
    return ParquetRows(files / "*.parquet", chunk_rows=350)


@pytest.fixture
def many(make_guard):
    """Guards of one key, so that equal scores have equal answers."""

    def make(X, y, ledger=None, **changes):
        return make_guard(ledger, X=X, y=y, **{"seed": 3, "noise": 0.002, **changes})

    return make


def every_form(frame, parquet):
    """The same holdout in memory, in Parquet files and in Dask, cut at other rows each."""
    X, y, lazy = frame.drop(columns="label"), frame.label, dd.from_pandas(frame, npartitions=7)
    yield "memory", X, y
    yield "parquet", parquet, "label"
    yield "parquet, labels in memory", parquet.select(list(X)), y.to_numpy()
    yield "parquet, labels in Dask", parquet.select(list(X)), lazy.label
    yield "dask", lazy, "label"
    yield "dask, labels apart", lazy[list(X)], lazy.label


# ---- the same holdout


def test_a_holdout_is_the_same_in_memory_in_parquet_and_in_dask(many, frame, parquet, model):
    guards = {name: many(X, y) for name, X, y in every_form(frame, parquet)}
    answers = {name: guard.evaluate(model, prior=0.5) for name, guard in guards.items()}
    assert len(answers) == 6
    assert len(set(answers.values())) == 1, answers
    assert len({guard.digest for guard in guards.values()}) == 1
    for name, guard in guards.items():
        assert guard.evaluate(model, prior=0.5).replayed, name


def test_what_is_asked_for_is_the_same_in_memory_in_parquet_and_in_dask(many, frame, parquet, model):
    told = set()
    for _, X, y in every_form(frame, parquet):
        guard, never = many(X, y, reveals=1, choices=[2]), Predicting(always_no)
        choice = guard.choose([never, model], [0.5, 0.75])
        revealed = guard.reveal(model, prior=0.75)
        last = guard.final(model)
        assert last.value == pytest.approx(model.score(frame.drop(columns="label"), frame.label), abs=1e-9)
        told.add((choice.index, choice.others, choice.answer, revealed, last))
        assert guard.final(model).replayed
    assert len(told) == 1


def test_a_chunk_that_fails_is_a_failure_of_whatever_was_asked(many, parquet, model):
    def failing(X):
        if len(X) != 350:
            raise ValueError(f"a private word: {X!r}")
        return np.full(len(X), "no")

    guard, broken = many(parquet, "label", reveals=1, choices=[2]), Predicting(failing)
    for ask in (
        lambda: guard.choose([broken, model], [0.9, 0.7]),
        lambda: guard.reveal(broken, prior=0.7),
    ):
        caught = refuses(ModelError, "withheld", ask)
        assert "private" not in str(caught)
    answer, failed = guard.final([model, broken])
    assert "private" not in str(failed)
    ended = [f"value {answer.value}, weight 524288", "failed, weight 524288"]
    told = ["candidate 1 of 2, rank 2, failed", "failed", *ended]
    assert guard.history()["told"].tolist() == told


@pytest.mark.parametrize("rows", [17, 299, 300, 10_000])
def test_how_rows_are_cut_does_not_matter(many, frame, model, tmp_path, rows):
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=rows)
    chunks = ParquetRows(tmp_path / "one.parquet", chunk_rows=max(rows // 2, 50))
    guard, plain = many(chunks, "label"), many(frame.drop(columns="label"), frame.label)
    assert guard.digest == plain.digest
    assert guard.evaluate(model, prior=0.5) == plain.evaluate(model, prior=0.5)


CHANGES = {
    "value": lambda frame: frame.assign(b=frame.b + (frame.index == ROWS - 1)),
    "order": lambda frame: frame.iloc[::-1],
    "column name": lambda frame: frame.rename(columns={"a": "A"}),
    "column order": lambda frame: frame[["b", "a", "c", "whole", "label"]],
    "label": lambda frame: frame.assign(
        label=np.where(frame.index > 0, frame.label, "no" if frame.label[0] == "yes" else "yes")
    ),
    "type": lambda frame: frame.assign(whole=frame.whole.astype(float)),
    "rows": lambda frame: frame[:-1],
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_holdout_is_another(many, frame, files, change, tmp_path):
    CHANGES[change](frame).to_parquet(tmp_path / "other.parquet", row_group_size=500)
    ours, theirs = (many(ParquetRows(path), "label") for path in (files, tmp_path / "other.parquet"))
    assert ours.digest != theirs.digest


def test_dask_arrays_are_the_same_as_the_array(many, problem):
    X_train, y_train, X, y = problem
    model = LogisticRegression().fit(X_train, y_train)
    plain = many(X, y)
    chunked = many(da.from_array(X, chunks=(300, 3)), da.from_array(y, chunks=450))
    unknown = da.from_array(X, chunks=(300, 4))
    unknown = unknown[unknown[:, 0] > -np.inf]  # Dask does not know how many rows that leaves
    counted = many(unknown, y)
    assert plain.digest == chunked.digest == counted.digest
    answers = {guard.evaluate(model, prior=0.5) for guard in (plain, chunked, counted)}
    assert len(answers) == 1


@pytest.mark.long(
    "reusable_holdout/guard/chunks", "reusable_holdout/metrics", "reusable_holdout/guard/models.py"
)
@pytest.mark.parametrize("backend", ["sequential", "threading", "loky", "multiprocessing"])
def test_the_backend_does_not_matter(many, frame, parquet, model, backend):
    expected = many(frame.drop(columns="label"), frame.label).evaluate(model, prior=0.5)
    workers = {} if backend == "sequential" else {"n_jobs": 2}
    for X in (parquet, dd.from_pandas(frame, npartitions=5)):
        with joblib.parallel_config(backend, **workers):
            assert many(X, "label").evaluate(model, prior=0.5) == expected


def test_workers_predict_in_parallel(many, parquet):
    here = os.getpid()
    elsewhere = Predicting(lambda X: np.where(os.getpid() == here, "no", ["yes"] * len(X)))
    with joblib.parallel_config("loky", n_jobs=2):
        guard = many(parquet, "label", noise=0.0)
        answer = guard.evaluate(elsewhere, prior=0.9, name="all yes")
    share = float(np.mean(np.asarray(guard._view.holdout.y) == "yes"))
    assert answer.low < share < answer.high
    assert answer.value < 0.9


def test_row_groups_are_read_together_up_to_the_rows_of_a_chunk():
    """Each for itself, a file of small groups would take as many reads as it has groups."""
    assert _together([300, 300, 300, 700, 50, 0], 600) == [[0, 1], [2], [3, 4]]


def test_rows_are_never_in_memory_together(many, parquet):
    sizes = []

    def seen(X):
        sizes.append(len(X))
        return np.full(len(X), "no")

    many(parquet, "label").evaluate(Predicting(seen), prior=0.5)
    assert sum(sizes) == ROWS
    assert max(sizes) <= 350


def test_labels_take_a_byte_each_and_are_read_once(many, parquet):
    guard = many(parquet, "label")
    labels = guard._view.holdout.y
    assert isinstance(labels, CodedLabels)
    assert labels.codes.dtype == np.int8
    numbers = many(parquet.select(["a", "b"]), parquet.select(["whole"]))
    assert numbers._view.holdout.y.dtype == np.int8
    assert numbers._view.holdout.bound.classes.tolist() == list(range(-5, 5))
    assert (
        numbers.digest
        == many(parquet.select(["a", "b"]), np.asarray(numbers._view.holdout.y, np.int64)).digest
    )


@pytest.mark.long(
    "reusable_holdout/guard/chunks", "reusable_holdout/metrics", "reusable_holdout/guard/models.py"
)
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning:distributed.*")
@pytest.mark.parametrize("processes", [True, False])
def test_a_dask_cluster_predicts_what_lies_on_it(many, frame, parquet, model, processes, capfd):
    distributed = pytest.importorskip("distributed")
    expected = many(frame.drop(columns="label"), frame.label).evaluate(model, prior=0.5)
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=processes, dashboard_address=None
    )
    with cluster, distributed.Client(cluster):
        kept = dd.from_pandas(frame, npartitions=5).persist()
        with joblib.parallel_config("dask"):
            for X in (parquet, kept, dd.from_pandas(frame, npartitions=5)):
                guard = many(X, "label")
                assert guard.evaluate(model, prior=0.5) == expected
                assert guard.evaluate(Predicting(talks), prior=0.5).query == 2
                refuses(ModelError, "", guard.evaluate, Predicting(quotes), prior=0.5)
        with joblib.parallel_config("loky", n_jobs=2), pytest.raises(InputError, match="predicted there"):
            many(kept, "label").evaluate(model, prior=0.5)
    assert "private" not in "".join(capfd.readouterr())


# ---- everything that holds in memory holds


@pytest.mark.filterwarnings("ignore:f1 counts 'yes'")
@pytest.mark.parametrize("metric", ["roc_auc", "log_loss", "brier", "balanced_accuracy", "f1"])
def test_other_metrics_have_the_same_answers(many, frame, parquet, model, metric):
    changes = {"metric": metric, "threshold": None, "tolerance": None, "estimate": None}
    prior = 0.5
    guards = [many(X, y, **changes) for _, X, y in list(every_form(frame, parquet))[::4]]
    answers = {guard.evaluate(model, prior=prior) for guard in guards}
    assert len(guards) == 2
    assert len(answers) == 1


def test_values_have_the_same_answers(many, frame, parquet):
    features = frame[["a", "b"]]
    model = LinearRegression().fit(features[:300], frame.c[:300])
    changes = {"metric": mae(lower=-6, upper=6), "threshold": None, "estimate": None}
    answers = {
        guard.evaluate(model, prior=3.0)
        for guard in (
            many(features, frame.c, **changes),
            many(parquet.select(["a", "b", "c"]), "c", **changes),
            many(dd.from_pandas(frame, npartitions=4)[["a", "b", "c"]], "c", **changes),
        )
    }
    assert len(answers) == 1


def test_weights_and_comparisons_hold_too(many, frame, parquet, model):
    weights = (np.arange(ROWS) % 3 > 0).astype(float)
    other = Predicting(always_no)
    found = []
    for _, X, y in list(every_form(frame, parquet))[::4]:
        guard = many(X, y, sample_weight=weights)
        found.append((guard.evaluate(model, prior=0.5), guard.compare(model, other, prior=0.3)))
    assert len(found) == 2
    assert found[0] == found[1]


def test_predictions_may_come_in_chunks(many, frame, parquet, model, tmp_path):
    predicted = model.predict(frame.drop(columns="label"))
    pd.DataFrame({"p": predicted}).to_parquet(tmp_path / "p.parquet", row_group_size=400)
    column = ParquetRows(tmp_path / "p.parquet")
    lazy = da.from_array(np.array(predicted, dtype="U3"), chunks=(431,))
    series = dd.from_pandas(pd.Series(predicted), npartitions=4)
    expected = many(parquet, "label").evaluate(predicted, prior=0.5)
    for form in (column, lazy, series):
        guard = many(parquet, "label")
        assert guard.evaluate(form, prior=0.5) == expected
        assert guard.evaluate(predicted, prior=0.5).replayed
        assert [one.value for one in guard.evaluate([form, predicted], prior=[0.5, 0.5])] == [
            expected.value
        ] * 2
    both = da.concatenate([lazy[None], lazy[::-1][None]])
    batch = many(parquet, "label").evaluate(list(both), prior=[0.5, 0.9])
    again = many(parquet, "label").evaluate([predicted, predicted[::-1]], prior=[0.5, 0.9])
    assert batch == again


def test_probabilities_may_come_in_chunks(many, frame, parquet, model):
    table = model.predict_proba(frame.drop(columns="label"))
    changes = {"metric": "brier", "threshold": None, "estimate": None}
    expected = many(parquet, "label", **changes).evaluate(table, prior=0.2)
    for form in (da.from_array(table, chunks=(700, 1)), da.from_array(table[:, 1], chunks=999)):
        assert many(parquet, "label", **changes).evaluate(form, prior=0.2) == expected


@pytest.mark.parametrize("rows", [ROWS - 1, ROWS + 1])
def test_predictions_in_chunks_must_be_one_for_each_row(many, parquet, rows):
    guard = many(parquet, "label")
    with pytest.raises(InputError, match=f"must have {ROWS} rows"):
        guard.evaluate(da.from_array(np.full(rows, "no"), chunks=400), prior=0.5)
    with pytest.raises(InputError, match="among the classes"):
        guard.evaluate(da.from_array(np.full(ROWS, "maybe"), chunks=400), prior=0.5)
    assert guard.queries_asked == 0


def test_the_pickled_guard_holds_no_rows(many, parquet, ledger, frame):
    guard = many(parquet, "label", ledger, seed=None)
    content = pickle.dumps(guard)
    assert frame.a.to_numpy()[:4].tobytes() not in content
    assert len(content) < 1_000


def test_the_next_holdout_may_be_in_chunks(many, frame, parquet, model, ledger):
    guard = many(frame.drop(columns="label")[:2_000], frame.label[:2_000], ledger, seed=None)
    with pytest.raises(InputError, match="used before"):
        guard.rotate(
            dd.from_pandas(frame[:2_000], npartitions=3), "label", early=True, charges=3, allow={"vacuous"}
        )
    with pytest.raises(OverlapError, match=r"2,000 of its 3,000 rows are rows of epoch 1"):
        guard.rotate(parquet, "label", early=True, charges=3, allow={"vacuous"})
    rotation = guard.rotate(parquet, "label", early=True, charges=3, allow={"overlap", "vacuous"})
    assert rotation.guard.evaluate(model, prior=0.5).query == 1
    rotation.guard.close()


# ---- models that fail, and tell


@pytest.fixture
def marked(frame, tmp_path):
    """The frame, with a number in its last row that stands nowhere else."""
    marked = frame.copy()
    marked.loc[ROWS - 1, "a"] = MARK
    marked.to_parquet(tmp_path / "marked.parquet", row_group_size=400)
    return ParquetRows(tmp_path / "marked.parquet", chunk_rows=400)


BACKENDS = [
    {"backend": "threading", "n_jobs": 2},
    {"backend": "loky", "n_jobs": 2},
    {"backend": "sequential"},
]


@pytest.mark.parametrize("config", BACKENDS, ids=lambda config: config["backend"])
@pytest.mark.parametrize("lazily", [False, True])
def test_a_model_that_fails_on_one_chunk_is_one_failure_without_words(many, marked, config, lazily, capfd):
    X = dd.from_pandas(pd.concat(marked.chunks(), ignore_index=True), npartitions=6) if lazily else marked
    guard = many(X, "label")
    with joblib.parallel_config(**config), pytest.raises(ModelError) as caught:
        guard.evaluate(Predicting(fails_late), prior=0.5)
    told = "".join(capfd.readouterr()) + str(caught.value) + repr(caught.value.__dict__)
    assert "private" not in told
    assert str(MARK)[:8] not in told
    assert caught.value.__cause__ is caught.value.__context__ is None
    assert (guard.queries_asked, len(guard.history())) == (1, 1)
    with joblib.parallel_config(**config), pytest.raises(ModelError):
        guard.evaluate(Predicting(fails_late), prior=0.5)
    assert guard.queries_asked == 1


@pytest.mark.parametrize("kind", [SystemExit, Halted, GeneratorExit, StopIteration, InputError])
def test_nothing_that_a_model_raises_tells_chunks_apart(many, marked, kind):
    def raising(X):
        if X["a"].iloc[-1] == MARK:
            raise kind("a private word") if kind is not Halted else Halted("x", reason="x", history=X)
        return np.full(len(X), "no")

    guard = many(marked, "label")
    caught = refuses(ModelError, "", guard.evaluate, Predicting(raising), prior=0.5)
    assert "private" not in str(caught)


@pytest.mark.parametrize("config", BACKENDS, ids=lambda config: config["backend"])
def test_a_model_that_talks_is_not_heard_from_any_worker(many, marked, config, capfd, caplog):
    guard = many(marked, "label")
    with warnings.catch_warnings(record=True) as caught, joblib.parallel_config(**config):
        warnings.simplefilter("always")
        assert guard.evaluate(Predicting(talks), prior=0.5).query == 1
    told = "".join(capfd.readouterr()) + caplog.text + "".join(str(one.message) for one in caught)
    assert "private" not in told


@pytest.mark.parametrize(
    "wrong", [lambda X: np.full(len(X) + 1, "no"), lambda X: np.full(len(X), "maybe"), lambda X: None]
)
def test_a_model_whose_chunks_do_not_fit_fails(many, parquet, wrong):
    guard = many(parquet, "label")
    refuses(ModelError, "", guard.evaluate, Predicting(wrong), prior=0.5)
    assert guard.queries_asked == 1


def test_a_model_cannot_change_the_holdout(many, frame, problem):
    def spoils(X):
        X[:] = 0
        return np.zeros(len(X), int)

    _, _, X, y = problem
    before = X.copy()
    guard = many(da.from_array(X, chunks=(500, 4), name=False), y)
    with joblib.parallel_config("threading", n_jobs=2):
        guard.evaluate(Predicting(spoils), prior=0.5)
    assert np.array_equal(X, before)


def test_a_model_that_cannot_travel_is_refused_free_of_charge(many, parquet):
    held = Predicting(np.sum)
    held.lock = threading.Lock()
    guard = many(parquet, "label")
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(InputError, match="picklable"):
        guard.evaluate(held, prior=0.5)
    assert guard.queries_asked == 0


def test_a_model_for_other_columns_is_refused_free_of_charge(many, parquet, model):
    guard = many(parquet.select(["a", "b", "label"]), "label")
    refuses(InputError, "2 columns", guard.evaluate, model, prior=0.5)
    assert guard.queries_asked == 0


def test_what_chunks_are_made_of_says_nothing_about_itself(many, parquet, frame):
    lazy = many(dd.from_pandas(frame, npartitions=2), "label")
    for guard in (many(parquet, "label"), lazy):
        assert repr(guard._view.holdout.X) in (f"<ParquetRows: {ROWS:,} rows>", f"<DaskRows: {ROWS:,} rows>")
        assert repr(guard._view.holdout.y) == f"<CodedLabels: {ROWS} rows>"


# ---- files that are not what they should be


@pytest.mark.parametrize("given", ["holdout/*.parquet", "data.csv"])
def test_a_path_is_not_taken_for_data(make_guard, given, labels, files):
    for X in (given, files, [files]):
        refuses(InputError, "ParquetRows", make_guard, X=X)
    refuses(InputError, "ParquetRows", make_guard, X=np.zeros((len(labels), 1)), y=given)


def test_y_must_name_a_column(many, parquet, frame):
    for X in (parquet, dd.from_pandas(frame, npartitions=2)):
        refuses(InputError, "'lable'", many, X, "lable")
    refuses(InputError, "one of several columns of X", many, parquet.select(["label"]), "label")
    refuses(InputError, "without names", many, da.zeros((10, 2)), "label")


def test_features_and_labels_must_have_as_many_rows(many, parquet, frame):
    for X in (parquet, dd.from_pandas(frame, npartitions=2)):
        refuses(InputError, "the same number of rows", many, X, frame.label[:-1])


def refused(match, *args, **kwargs):
    refuses(InputError, match, ParquetRows, *args, **kwargs)


def test_files_must_be_there_and_readable(tmp_path):
    refused("there are none", tmp_path / "none.parquet")
    refused("there are none", str(tmp_path / "*.parquet"))
    refused("there are none", tmp_path)
    refused("none was named", [])
    refused("text or Paths", 5)
    refused("text or Paths", [5])
    (tmp_path / "text.parquet").write_text("no Parquet at all")
    refused("that can be read", tmp_path / "text.parquet")
    (tmp_path / "empty.parquet").write_bytes(b"")
    refused("that can be read", tmp_path / "empty.parquet")


def test_files_must_hold_rows(tmp_path, frame):
    pq.write_table(pa.Table.from_pandas(frame)[:0], tmp_path / "a.parquet")
    refused("hold none", tmp_path)
    frame[:50].to_parquet(tmp_path / "b.parquet")
    assert ParquetRows(tmp_path).shape == (50, 5)


def test_files_must_be_alike(tmp_path, frame):
    frame.to_parquet(tmp_path / "a.parquet")
    frame.drop(columns="b").to_parquet(tmp_path / "b.parquet")
    refused("must have one column 'b'; it has 0", tmp_path)
    assert ParquetRows(tmp_path, ["a", "label"]).shape == (2 * ROWS, 2)
    frame.astype({"b": "float32"}).to_parquet(tmp_path / "b.parquet")
    refused("one type in all files; got (double and float|float and double)", tmp_path)
    frame[["c", "b", "a", "whole", "label"]].to_parquet(tmp_path / "b.parquet")  # order does not matter
    assert ParquetRows(tmp_path).names == ("a", "b", "c", "whole", "label")


def test_columns_must_be_there(files):
    refused("must have one column 'z'", files, ["a", "z"])
    refused("list of names", files, "a")
    refused("list of names", files, [])
    for rows in (0, True, 2.5):
        refused("chunk_rows", files, chunk_rows=rows)


@pytest.mark.parametrize(
    "column",
    [
        *(pd.Categorical(["a", "b"]), [b"a", b"b"], [[1], [2]], [{"x": 1}, {"x": 2}], [True, None]),
        pd.to_timedelta([1, 2]),
    ],
    ids=["categories", "bytes", "lists", "records", "missing booleans", "durations"],
)
def test_other_types_are_refused(tmp_path, column):
    pd.DataFrame({"x": column, "y": [0, 1]}).to_parquet(tmp_path / "a.parquet")
    refused("column 'x' must hold", tmp_path)
    assert ParquetRows(tmp_path, ["y"]).shape == (2, 1)


def test_missing_integers_are_floats_in_every_chunk(many, tmp_path, frame):
    holed = frame.assign(whole=frame.whole.astype("Int64"))
    holed.loc[ROWS - 1, "whole"] = pd.NA
    holed.to_parquet(tmp_path / "a.parquet", row_group_size=500)
    chunks = ParquetRows(tmp_path, chunk_rows=500)
    assert {chunk["whole"].dtype for chunk in chunks.chunks()} == {np.dtype(float)}
    plain = frame.assign(whole=frame.whole.astype(float))
    plain.loc[ROWS - 1, "whole"] = np.nan
    assert many(chunks, "label").digest == many(plain.drop(columns="label"), plain.label).digest


def test_missing_labels_are_refused_without_a_word_of_them(many, tmp_path, frame):
    holed = frame.copy()
    holed.loc[ROWS - 1, "label"] = None
    holed.to_parquet(tmp_path / "a.parquet", row_group_size=500)
    refuses(InputError, "must not be missing", many, ParquetRows(tmp_path), "label")


def test_the_index_that_pandas_wrote_is_no_feature(tmp_path, frame):
    frame.set_index(frame.a.rename("key")).to_parquet(tmp_path / "a.parquet")
    assert ParquetRows(tmp_path).names == ("a", "b", "c", "whole", "label")


def test_a_ledger_belongs_to_its_files(many, files, frame, ledger, tmp_path):
    many(ParquetRows(files), "label", ledger, seed=None)
    frame[::-1].to_parquet(tmp_path / "other.parquet")
    with pytest.raises(LedgerMismatchError, match="other data"):
        ReusableHoldout.open(ledger, ParquetRows(tmp_path / "other.parquet"), "label")


def test_other_dask_collections_are_refused(many, labels):
    bag = pytest.importorskip("dask.bag").from_sequence([1, 2])
    for X in (bag, dask.delayed(len)([])):
        refuses(InputError, "Dask", many, X, labels)
    refuses(InputError, "rows and columns", many, da.zeros(len(labels)), labels)
    with pytest.raises(InputError, match="one kind"):
        many(None, da.from_delayed(dask.delayed(lambda: np.array([], int))(), (0,), int))


def test_what_dask_raises_tells_nothing(many, frame):
    def breaks(part):
        if len(part):
            raise ValueError(f"a private word: {part!r}")
        return part

    lazy = dd.from_pandas(frame, npartitions=2).map_partitions(breaks, meta=frame[:0])
    caught = refuses(HoldoutError, "", many, lazy, "label")
    assert "private" not in str(caught)


# ---- what ends joblib's workers, or needs others: last, for making them takes seconds


@pytest.mark.parametrize("change", ["gone", "other"])
def test_files_that_change_are_noticed_free_of_charge(many, marked, frame, model, tmp_path, change):
    guard = many(marked, "label")
    if change == "gone":
        (tmp_path / "marked.parquet").unlink()
    else:
        frame[:100].to_parquet(tmp_path / "marked.parquet")
    for config in BACKENDS:
        with joblib.parallel_config(**config), pytest.raises(InputError, match="nothing was charged"):
            guard.evaluate(model, prior=0.5)
    assert guard.queries_asked == 0


def test_a_model_that_ends_its_worker_fails(many, marked):
    guard = many(marked, "label")
    with joblib.parallel_config("loky", n_jobs=2), pytest.raises(ModelError) as caught:
        guard.evaluate(Predicting(leaves), prior=0.5)
    assert "worker" not in str(caught.value).lower()
    assert guard.queries_asked == 1


def test_a_guard_goes_to_other_processes(many, frame, parquet, ledger):
    guard, model = many(parquet, "label", ledger, seed=None), Predicting(always_no)
    answer = guard.evaluate(model, prior=0.5)
    with joblib.parallel_config("loky", n_jobs=2):
        answers = joblib.Parallel()(joblib.delayed(guard.evaluate)(model, prior=0.5) for _ in range(2))
    assert [(one.value, one.replayed) for one in answers] == [(answer.value, True)] * 2
    assert guard.queries_asked == 1
    opened = ReusableHoldout.open(ledger, frame.drop(columns="label"), frame.label)
    assert opened.evaluate(model, prior=0.5).replayed
    opened.close()
