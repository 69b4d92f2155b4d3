"""A fitted guarded search is loaded and predicts where no ledger is: it carries a frozen certificate, and no path."""

import copy
import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace

import cloudpickle
import joblib
import numpy as np
import pytest
from cases import refuses
from reusable_holdout_sklearn import TRUSTED_TYPES, GuardedSearchCV, guarded_scorer
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.validation import check_is_fitted

from reusable_holdout import FrozenCertificate, ReusableHoldout, verify
from reusable_holdout.cli import main
from reusable_holdout.errors import InputError
from reusable_holdout.guard import frozen_guard
from reusable_holdout.guard.fingerprint import fingerprint
from reusable_holdout.guard.handle import FrozenGuard

skops_io = pytest.importorskip("skops.io")

TRUSTED = [
    *TRUSTED_TYPES,
    "sklearn.model_selection._split.StratifiedKFold",
]  # a search of scikit-learn keeps it
LONG = pytest.mark.long("reusable_holdout/guard", "integrations/reusable_holdout_sklearn")


def joblib_dumps(model):
    file = io.BytesIO()
    joblib.dump(model, file)
    return file.getvalue()


DUMPS = {
    "pickle": pickle.dumps, "joblib": joblib_dumps, "cloudpickle": cloudpickle.dumps,
    "skops": skops_io.dumps,
}  # fmt: skip

# loads it in another folder, with no ledger; prints what came of it
_ELSEWHERE = """
import json, pickle, sys
import joblib, numpy as np
way, path, data = sys.argv[1:]
if way == "skops":
    import skops.io
    from reusable_holdout_sklearn import TRUSTED_TYPES
    search = skops.io.load(path, trusted=[*TRUSTED_TYPES, "sklearn.model_selection._split.StratifiedKFold"])
elif way == "mlflow":
    import mlflow
    search = mlflow.sklearn.load_model(path)
elif way == "joblib":
    search = joblib.load(path)
else:
    search = pickle.load(open(path, "rb"))
from reusable_holdout.errors import LedgerError
X, y = np.load(data)["X"], np.load(data)["y"]
guard, told = search.guard, {"predictions": search.predict(X).tolist(), "said": []}
told["results"] = json.loads(search.guard_results_.to_json())
told["score"] = search.score(X, y)
for ask in (
    lambda: search.fit(X, y), lambda: guard.evaluate(search, prior=0.7), lambda: guard.queries_asked
):
    try:
        ask()
    except LedgerError as error:
        told["said"].append(str(error))
told["certificate"] = guard.certificate().to_json()
told["repr"] = repr(search) + repr(guard)
print(json.dumps(told))
"""


@pytest.fixture
def kept(guard, tmp_path):
    """The ledger elsewhere; the guard's own folder is gone."""
    folder, path = tmp_path / "a_secret_folder", tmp_path / "the_kept_ledger.db"

    def keep():
        guard.close()
        shutil.copy(folder / "the_ledger.db", path)
        shutil.rmtree(folder)
        return path

    return keep


def unzipped(dumped, way):
    """Everything that can be read in a dump."""
    if way != "skops":
        return dumped
    with zipfile.ZipFile(io.BytesIO(dumped)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


@pytest.mark.parametrize("way", DUMPS)
def test_a_fitted_search_is_dumped_without_path_key_or_row(fitted, guard, private, way):
    content = unzipped(DUMPS[way](fitted), way)
    assert [one for one in private if one in content] == []
    assert any(one in pickle.dumps(guard) for one in private)  # a guard itself is a handle: it says where
    assert any(one in pickle.dumps(clone(fitted)) for one in private)  # and so is an unfitted search's


def check_elsewhere(fitted, way, place, folder, train, kept):
    """Load the search in another process, and check what it says there."""
    np.savez(folder / "rows.npz", X=train[0], y=train[1])
    ledger, here = kept(), fitted.predict(train[0])
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _ELSEWHERE, way, str(place), "rows.npz"],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=os.environ | {"MLFLOW_ALLOW_PICKLE_DESERIALIZATION": "true"},
    )
    assert ran.returncode == 0, ran.stderr
    told = json.loads(ran.stdout.splitlines()[-1])
    assert told["predictions"] == here.tolist()
    assert told["score"] == np.mean(here == train[1])
    assert told["results"] == json.loads(fitted.guard_results_.to_json())
    certificate = FrozenCertificate.from_json(told["certificate"])
    assert certificate == fitted.certificate_
    assert verify(ledger, certificate=certificate).problems == []
    assert certificate.head == verify(ledger).head
    assert len(told["said"]) == 3
    for words in told["said"]:
        assert "must be asked where it lives" in words
        assert "guard=guard" in words
        for known in (certificate.machine, certificate.holdout[:12], certificate.head[:12]):
            assert known in words
    assert "a_secret_folder" not in ran.stdout


@pytest.mark.parametrize(
    "way", ["joblib", *(pytest.param(way, marks=LONG) for way in ["pickle", "cloudpickle", "skops"])]
)
def test_it_is_loaded_and_predicts_where_no_ledger_is(fitted, train, tmp_path, kept, way):
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "model").write_bytes(DUMPS[way](fitted))
    check_elsewhere(fitted, way, "model", folder, train, kept)


@LONG
@pytest.mark.filterwarnings("ignore")  # MLflow's, of formats that run code
@pytest.mark.parametrize("form", ["cloudpickle", "skops"])
def test_a_model_of_mlflow_is_loaded_and_predicts_where_no_ledger_is(
    fitted, private, train, tmp_path, kept, form
):
    mlflow, model = pytest.importorskip("mlflow.sklearn"), tmp_path / "model"
    trusted = {"skops_trusted_types": TRUSTED} if form == "skops" else {}
    mlflow.save_model(fitted, model, serialization_format=form, pip_requirements=[], **trusted)
    for path in (path for path in model.rglob("*") if path.is_file()):
        content = unzipped(path.read_bytes(), path.suffix[1:])
        assert [one for one in private if one in content] == [], path
    check_elsewhere(fitted, "mlflow", model, tmp_path, train, kept)


def frozen(model):
    """Load a model as another process would, in which its guard is not open."""
    script = "import pickle, sys; sys.stdout.buffer.write(pickle.dumps(pickle.load(sys.stdin.buffer).guard))"
    ran = subprocess.run(
        [sys.executable, "-c", script], input=pickle.dumps(model), capture_output=True, check=True
    )
    loaded = copy.copy(model)
    loaded.guard = pickle.loads(ran.stdout)
    return loaded


def test_a_deployed_search_can_be_deployed_again_and_given_its_guard_back(fitted, guard, train):
    again = frozen(copy.deepcopy(frozen(fitted)))
    assert isinstance(again.guard, FrozenGuard)
    assert again.guard.certificate() == again.certificate_ == fitted.certificate_
    assert fitted.certificate_.of([fitted.best_answer_.query]) == fitted.certificate_
    (one,) = fitted.certificate_.answers
    answer = fitted.best_answer_
    assert one[2:] == (answer.told, answer.prior, answer.value, answer.low, answer.high)
    asked = guard.queries_asked
    live = clone(again).set_params(guard=guard).fit(*train)
    check_is_fitted(live)
    assert guard.queries_asked == asked  # the same question


def test_where_the_guard_is_open_a_loaded_search_has_it(fitted, guard, make_guard):
    for again in (
        pickle.loads(pickle.dumps(fitted)),
        skops_io.loads(skops_io.dumps(fitted), trusted=TRUSTED),
        copy.deepcopy(fitted),
    ):
        assert again.guard is guard
    inner = GridSearchCV(LogisticRegression(), {"C": [0.1]}, cv=2)
    for other in (make_guard(ledger=None), make_guard(ledger=None, seed=1)):
        fit = GuardedSearchCV(inner, other, ask="choose").fit(
            np.arange(40)[:, None] @ np.ones((1, 4)), np.arange(40) % 2
        )
        assert pickle.loads(pickle.dumps(fit)).guard is other


def test_skops_needs_to_trust_what_is_named_and_nothing_else(fitted):
    assert set(skops_io.get_untrusted_types(data=skops_io.dumps(fitted))) == set(TRUSTED)


def test_it_is_dumped_after_its_guard_was_closed(fitted, guard):
    guard.close()
    assert frozen(fitted).guard.certificate() == fitted.certificate_


def test_a_model_that_holds_a_guard_is_the_same_model_whatever_was_asked_since(guard, make_guard, train):
    def held(one):
        scorer = guarded_scorer(one)
        models = one, scorer, CalibratedClassifierCV(GridSearchCV(LogisticRegression(), {}, scoring=scorer))
        return [fingerprint(model) for model in models]

    before = held(guard)
    guard.evaluate(np.zeros(4_000), prior=0.5)
    guarded_scorer(guard)(LogisticRegression().fit(*train), *train)
    certificate = guard.certificate()
    assert held(guard) == before
    assert fingerprint(frozen_guard(guard, certificate)) == before[0]
    assert not set(held(make_guard())) & set(before)


# ---- certificates


@pytest.fixture
def told(fitted):
    return json.loads(fitted.certificate_.to_json())


def test_a_forged_certificate_is_refused(guard, told, make_guard, tmp_path, capsys):
    path, ledger = tmp_path / "certificate.json", str(tmp_path / "a_secret_folder" / "the_ledger.db")

    def problems(**changes):
        path.write_text(json.dumps(told | changes))
        found = verify(ledger, certificate=path)
        assert main(["verify", ledger, "--certificate", str(path)]) == (1 if found.problems else 0)
        capsys.readouterr()
        return " ".join(found.problems)

    assert problems() == ""
    last = told["answers"][-1]
    changed = [{name: last[name] + 1e-12} for name in ("prior", "value", "low", "high")]
    for changes in (*changed, {"told": "cell 2"}, {"kind": "final"}):
        assert "was changed" in problems(answers=[last | changes]), changes
    assert "no answer" in problems(answers=[last | {"query": 99}])
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
    first = FrozenCertificate.from_json(json.dumps(told))
    assert verify(make_guard(seed=None)._view.ledger.path, certificate=first).problems


def test_a_text_or_an_object_that_is_no_certificate_is_refused(guard, fitted, told, tmp_path):
    one, path = fitted.certificate_.answers[0], tmp_path / "certificate.json"
    wrong = [{"answers": 3}, {"answers": (one._replace(value=np.nan),)}, {"head": [1]}, {"epoch": "1"}]
    wrong = [*(replace(fitted.certificate_, **changes) for changes in wrong), tmp_path / "nowhere.json", 3]
    changed = [
        {"answers": told["answers"] * 2}, {"library": None}, {"machine": ["one"]}, {"machine": "\ud800"},
    ]  # fmt: skip
    texts = [json.dumps(told | changes) for changes in (*changed, {"head": None}, {"epoch": "1"})]
    texts += [
        "", "[]", "{}", "[" * 100_000, '{"answers": [], "classes": null}', '{"answers": [{"query": 1}]}',
    ]  # fmt: skip
    for given in (*wrong, *texts):
        if isinstance(given, str):
            path.write_text(given)
        with pytest.raises(InputError, match="certificate must be"):
            verify(guard.ledger, certificate=path if isinstance(given, str) else given)
    with pytest.raises(InputError, match="query 7 is not one"):
        guard.certificate(guard.evaluate(np.zeros(4_000), prior=0.5)._replace(query=7))


def test_rows_cut_off_since_are_found_by_a_certificate(guard, data, tmp_path):
    ledger, copied = tmp_path / "a_secret_folder" / "the_ledger.db", tmp_path / "copied.db"
    guard.evaluate(np.zeros(4_000), prior=0.5)
    guard.close()
    shutil.copy(ledger, copied)
    with ReusableHoldout.open(ledger, data[0][2_000:], data[1][2_000:]) as again:
        later = again.certificate(again.evaluate(np.ones(4_000), prior=0.5))
    assert verify(ledger, certificate=later).sound
    assert "not in the chain" in " ".join(verify(copied, certificate=later).problems)


def test_a_guard_of_another_metric_freezes_its_own_answers(guard, data):
    women = guard.on(sample_weight=np.arange(4_000) < 2_000)
    for predictions in (np.zeros(4_000), data[1][2_000:]):
        guard.evaluate(predictions, prior=0.5)
    answer = women.evaluate(np.zeros(4_000), prior=0.5)
    certificate = women.certificate()
    assert [one.query for one in certificate.answers] == [answer.query]
    assert "weights" in certificate.metric
    assert len(guard.certificate().answers) == 2
    for one in (certificate, guard.certificate()):
        assert verify(guard.ledger, certificate=one).problems == []
    refuses(InputError, "not one of them", guard.certificate, answer)
