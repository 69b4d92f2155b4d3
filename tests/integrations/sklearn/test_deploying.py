"""A fitted search is loaded and predicts where no ledger is: it carries a frozen certificate, and nothing private."""

import copy
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace

import cloudpickle
import joblib
import numpy as np
import pytest
from reusable_holdout_sklearn import TRUSTED_TYPES, GuardedSearchCV, guarded_scorer
from sklearn.base import clone
from sklearn.feature_selection import SequentialFeatureSelector
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted

from reusable_holdout import FrozenCertificate, ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError
from reusable_holdout.guard import Whereabouts
from reusable_holdout.guard.absent import FrozenGuard
from reusable_holdout.guard.fingerprint import fingerprint

skops_io = pytest.importorskip("skops.io")

LONG = pytest.mark.long("reusable_holdout/guard", "integrations/reusable_holdout_sklearn")
FOLDS = "sklearn.model_selection._split.StratifiedKFold"  # a search of scikit-learn keeps it
GRID = {"C": [0.01, 1.0]}


def joblib_dumps(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


DUMPS = {
    "pickle": pickle.dumps,
    "pickle 0": lambda model: pickle.dumps(model, protocol=0),
    "joblib": joblib_dumps,
    "cloudpickle": cloudpickle.dumps,
    "skops": skops_io.dumps,
}

# loads it in another folder, with no ledger; prints what came of it
_ELSEWHERE = """
import io, json, pickle, sys
import joblib, numpy as np
way, path, data = sys.argv[1:]
if way == "skops":
    import skops.io
    from reusable_holdout_sklearn import TRUSTED_TYPES
    search = skops.io.load(path, trusted=[*TRUSTED_TYPES, "sklearn.model_selection._split.StratifiedKFold"])
elif way == "joblib":
    search = joblib.load(path)
else:
    search = pickle.load(open(path, "rb"))
X, y = np.load(data)["X"], np.load(data)["y"]
from reusable_holdout.errors import LedgerError, Refused
told = {"predictions": search.predict(X).tolist(), "said": []}
guard = getattr(search, "guard", None)
if guard is None:  # its score would be the guard's answer
    guard = search.scorer_.guard
    asks = [lambda: search.fit(X, y), lambda: search.scorer_(search, X, y), lambda: search.score(X, y)]
else:
    told["results"] = json.loads(search.guard_results_.to_json())
    told["score"] = search.score(X, y)
    asks = [lambda: search.fit(X, y)]
for ask in [*asks, lambda: guard.evaluate(search, prior=0.7), lambda: guard.queries_asked]:
    try:
        ask()
    except LedgerError as error:
        told["said"].append(str(error))
    except Refused as refused:
        assert isinstance(refused.error, LedgerError)
        told["said"].append(str(refused))
told["certificate"] = guard.certificate().to_json()
told["repr"] = repr(search) + repr(guard)
print(json.dumps(told))
"""


def guard_of(search):
    return search.guard if isinstance(search, GuardedSearchCV) else search.scorer_.guard


def unzipped(dumped, way):
    """What can be read in a dump."""
    if way != "skops":
        return dumped
    import zipfile

    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize("way", DUMPS)
def test_a_fitted_search_is_dumped_without_path_key_or_row(fitted, guard, private, way):
    content = unzipped(DUMPS[way](fitted), way)
    assert [one for one in private if one in content] == []
    assert any(one in pickle.dumps(guard) for one in private)  # a guard itself is a handle: it says where


@pytest.mark.parametrize(
    "way", ["joblib", *(pytest.param(way, marks=LONG) for way in ["pickle", "cloudpickle", "skops"])]
)
def test_it_is_loaded_and_predicts_where_no_ledger_is(fitted, guard, train, tmp_path, way):
    here, folder = fitted.predict(train[0]), tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "model").write_bytes(DUMPS[way](fitted))
    np.savez(folder / "rows.npz", X=train[0], y=train[1])
    guard.close()
    kept = tmp_path / "the_ledger.db"
    shutil.copy(tmp_path / "a_secret_folder" / "the_ledger.db", kept)
    shutil.rmtree(tmp_path / "a_secret_folder")

    command = [sys.executable, "-c", _ELSEWHERE, way, "model", "rows.npz"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert told["predictions"] == here.tolist()
    if isinstance(fitted, GuardedSearchCV):
        assert told["score"] == np.mean(fitted.predict(train[0]) == train[1])
        assert told["results"] == json.loads(fitted.guard_results_.to_json())
    certificate = FrozenCertificate.from_json(told["certificate"])
    assert verify(kept, certificate=certificate).problems == []
    assert certificate.head == verify(kept).head
    assert len(told["said"]) == (3 if isinstance(fitted, GuardedSearchCV) else 5)
    for words in told["said"]:
        assert "must be asked where it lives" in words
        assert certificate.machine in words
        assert certificate.holdout[:12] in words
        assert certificate.head[:12] in words
        assert "guard=guard" in words
    assert "a_secret_folder" not in ran.stdout


_SERVED = """
import json, sys
import mlflow, numpy as np
path, data = sys.argv[1:]
X = np.load(data)["X"]
model = mlflow.pyfunc.load_model(path)
search = mlflow.sklearn.load_model(path)
guard = getattr(search, "guard", None) or search.scorer_.guard
print(json.dumps([model.predict(X).tolist(), guard.certificate().to_json()]))
"""


@pytest.mark.filterwarnings("ignore")  # MLflow's, of formats that run code
@LONG
@pytest.mark.parametrize("form", ["cloudpickle", "skops"])
def test_a_model_of_mlflow_is_loaded_and_predicts_where_no_ledger_is(fitted, private, train, tmp_path, form):
    mlflow = pytest.importorskip("mlflow.sklearn")
    trusted = {"skops_trusted_types": [*TRUSTED_TYPES, FOLDS]} if form == "skops" else {}
    model = tmp_path / "model"
    mlflow.save_model(fitted, model, serialization_format=form, pip_requirements=[], **trusted)
    for path in (path for path in model.rglob("*") if path.is_file()):
        content = unzipped(path.read_bytes(), path.suffix[1:])
        assert [one for one in private if one in content] == [], path
    np.savez(tmp_path / "rows.npz", X=train[0])
    ledger = tmp_path / "a_secret_folder" / "the_ledger.db"
    ledger.rename(tmp_path / "kept.db")
    shutil.rmtree(ledger.parent)
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _SERVED, str(model), str(tmp_path / "rows.npz")],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=os.environ | {"MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "true"},
    )
    assert ran.returncode == 0, ran.stderr
    predictions, certificate = json.loads(ran.stdout)
    assert predictions == fitted.predict(train[0]).tolist()
    assert FrozenCertificate.from_json(certificate).answers


def test_a_certificate_has_the_answers_of_the_winner(fitted):
    loaded = frozen(fitted)
    certificate = guard_of(loaded).certificate()
    if isinstance(fitted, GuardedSearchCV):
        answer, (one,) = fitted.best_answer_, certificate.answers
        assert certificate == loaded.certificate_ == fitted.certificate_
        assert one == (
            answer.query,
            "choose",
            answer.told,
            answer.prior,
            answer.value,
            answer.low,
            answer.high,
        )
    else:
        results, best = fitted.cv_results_, fitted.best_index_
        scores = {results[f"split{fold}_test_score"][best] for fold in range(2)}
        assert scores <= {one.value for one in certificate.answers}
        assert len(certificate.answers) == 4
    assert (certificate.metric["name"], certificate.confidence, certificate.epoch) == ("accuracy", 0.95, 1)


def frozen(model):
    """What another process would load, of whose guards none is open."""
    from reusable_holdout.guard import whereabouts

    dumped = pickle.dumps(model)
    here = dict(whereabouts._HERE)
    whereabouts._HERE.clear()
    try:
        return pickle.loads(dumped)
    finally:
        whereabouts._HERE.update(here)


def test_what_was_deployed_can_be_deployed_again_and_cloned_and_given_its_guard_back(fitted, guard, train):
    again = frozen(frozen(copy.deepcopy(frozen(fitted))))
    assert isinstance(guard_of(again), FrozenGuard)
    np.testing.assert_array_equal(again.predict(train[0]), fitted.predict(train[0]))
    assert guard_of(again).certificate() == guard_of(frozen(fitted)).certificate()
    asked = guard.queries_asked
    if isinstance(fitted, GuardedSearchCV):
        live = clone(again).set_params(guard=guard).fit(*train)
    else:
        live = clone(again).set_params(scoring=guarded_scorer(guard)).fit(*train)
    check_is_fitted(live)
    assert guard.queries_asked == asked  # the same questions


def test_where_the_guard_is_open_what_is_loaded_has_it(fitted, guard):
    assert guard_of(pickle.loads(pickle.dumps(fitted))) is guard
    assert guard_of(skops_io.loads(skops_io.dumps(fitted), trusted=[*TRUSTED_TYPES, FOLDS])) is guard
    assert guard_of(copy.deepcopy(fitted)) is guard


def test_two_guards_in_memory_are_not_taken_for_each_other(data, train):
    X, y = data
    one, other = (ReusableHoldout(X[2_000:], y[2_000:], tolerance=0.15, queries=60, seed=0) for _ in "ab")
    scorers = [pickle.loads(pickle.dumps(guarded_scorer(guard))) for guard in (one, other)]
    assert [scorer.guard for scorer in scorers] == [one, other]


def test_skops_needs_to_trust_what_is_named_and_nothing_else(fitted):
    unknown = skops_io.get_untrusted_types(data=skops_io.dumps(fitted))
    assert set(unknown) <= {*TRUSTED_TYPES, FOLDS}
    both = skops_io.get_untrusted_types(data=skops_io.dumps([fitted, guarded_scorer(guard_of(fitted))]))
    assert not isinstance(fitted, GuardedSearchCV) or set(TRUSTED_TYPES) <= set(both)


def test_it_is_dumped_after_its_guard_was_closed(fitted, guard, train):
    before = guard_of(frozen(fitted)).certificate()
    guard.close()
    assert guard_of(frozen(fitted)).certificate() == before


def test_a_forged_certificate_is_refused(fitted, guard, make_guard, tmp_path, capsys):
    certificate = guard_of(frozen(fitted)).certificate()
    told = json.loads(certificate.to_json())
    path, ledger = tmp_path / "certificate.json", str(tmp_path / "a_secret_folder" / "the_ledger.db")

    def problems(**changes):
        path.write_text(json.dumps(told | changes))
        found = verify(ledger, certificate=path)
        assert main(["verify", ledger, "--certificate", str(path)]) == (1 if found.problems else 0)
        capsys.readouterr()
        return " ".join(found.problems)

    assert problems() == ""
    last = told["answers"][-1]
    for field in ("prior", "value", "low", "high"):
        assert "was changed" in problems(answers=[last | {field: last[field] + 1e-12}])
    for changes in ({"told": "cell 2"}, {"kind": "final"}):
        assert "was changed" in problems(answers=[last | changes])
    assert "not answered" in problems(answers=[last | {"query": 99}])
    first = FrozenCertificate.from_json(certificate.to_json())
    assert "not in the chain" in problems(head="00" * 32)
    for changes in (
        {"holdout": "00" * 32},
        {"confidence": 0.99},
        {"theory": 0},
        {"epoch": 2},
        {"epoch": 0},
        {"view": 1},
        {"classes": [0, 1, 2]},
        {"another_budget": True},
        {"metric": told["metric"] | {"name": "f1"}},
    ):
        assert "another guard" in problems(**changes), changes
    other = make_guard(seed=None)
    assert verify(other._ledger.path, certificate=first).problems


def test_what_never_was_frozen_is_refused(fitted, guard, tmp_path):
    certificate, path = guard_of(frozen(fitted)).certificate(), tmp_path / "certificate.json"
    told = json.loads(certificate.to_json())
    for changes in (
        {"answers": [told["answers"][0]] * 2},
        {"library": None},
        {"machine": ["one"]},
        {"machine": "\ud800"},
        {"head": None},
        {"epoch": "1"},
    ):
        path.write_text(json.dumps(told | changes))
        with pytest.raises(InputError, match="certificate must be"):
            verify(guard.ledger, certificate=path)
    one = certificate.answers[0]
    for changes in (
        {"answers": 3},
        {"answers": (one._replace(value=np.nan),)},
        {"head": [1]},
        {"epoch": "1"},
    ):
        with pytest.raises(InputError, match="certificate must be"):
            verify(guard.ledger, certificate=replace(certificate, **changes))


def test_what_is_no_certificate_is_refused(guard, tmp_path):
    path = tmp_path / "certificate.json"
    for text in (
        "",
        "[]",
        "{}",
        "[" * 100_000,
        '{"answers": [], "classes": null}',
        '{"answers": [{"query": 1}]}',
    ):
        path.write_text(text)
        with pytest.raises(InputError, match="certificate must be"):
            verify(guard.ledger, certificate=path)
    for wrong in (tmp_path / "nowhere.json", 3):
        with pytest.raises(InputError, match="certificate must be"):
            verify(guard.ledger, certificate=wrong)
    with pytest.raises(InputError, match="query 7 is none"):
        guard.certificate(guard.evaluate_predictions(np.zeros(4_000), prior=0.5)._replace(query=7))


def test_rows_cut_off_since_are_found_by_a_certificate(guard, tmp_path):
    ledger, copied = tmp_path / "a_secret_folder" / "the_ledger.db", tmp_path / "copied.db"
    guard.evaluate_predictions(np.zeros(4_000), prior=0.5)
    guard.close()
    shutil.copy(ledger, copied)
    with ReusableHoldout.open(ledger, *guard_rows(guard)) as again:
        answer = again.evaluate_predictions(np.ones(4_000), prior=0.5)
        later = again.certificate(answer)
    assert verify(ledger, certificate=later).sound
    assert "not in the chain" in " ".join(verify(copied, certificate=later).problems)


def guard_rows(guard):
    return guard._holdout.X, guard._holdout.y


def test_a_guard_of_another_metric_freezes_its_own_answers(guard, data, tmp_path):
    women = guard.on(sample_weight=np.arange(4_000) < 2_000)
    for predictions in (np.zeros(4_000), data[1][2_000:]):
        guard.evaluate_predictions(predictions, prior=0.5)
    answer = women.evaluate_predictions(np.zeros(4_000), prior=0.5)
    certificate = women.certificate()
    assert [one.query for one in certificate.answers] == [answer.query]
    assert "weights" in certificate.metric
    assert len(guard.certificate().answers) == 2
    for one in (certificate, guard.certificate()):
        assert verify(guard.ledger, certificate=one).problems == []
    with pytest.raises(InputError, match="none of them"):
        guard.certificate(answer)


def test_a_model_that_holds_a_guard_is_the_same_model_whatever_was_asked_since(guard, make_guard):
    before, other = fingerprint(Whereabouts(guard)), make_guard()
    guard.evaluate_predictions(np.zeros(4_000), prior=0.5)
    assert fingerprint(Whereabouts(guard)) == before
    assert fingerprint(Whereabouts(frozen(guarded_scorer(guard)).guard)) == before
    assert fingerprint(Whereabouts(other)) != before


def test_a_selector_is_dumped_without_the_training_rows_that_its_scorer_needs(guard, train):
    X, y = train
    selector = SequentialFeatureSelector(
        LogisticRegression(), n_features_to_select=1, cv=2, scoring=guarded_scorer(guard, features=X)
    ).fit(X, y)
    content = pickle.dumps(selector)
    assert not any(row.tobytes() in content for row in X)
    np.testing.assert_array_equal(frozen(selector).transform(X), selector.transform(X))
    again = clone(selector).fit(X, y)  # a copy has them
    assert again.scoring.features is X
