"""Importing is cheap and has no side effect."""

import ast
import importlib
import pickle
import subprocess
import sys

import pytest

import reusable_holdout

_REPORT = """
import logging, os, sys, threading, warnings
before = (set(os.environ.items()), threading.active_count(), list(logging.root.handlers), list(warnings.filters))
import reusable_holdout
{more}
after = (set(os.environ.items()), threading.active_count(), list(logging.root.handlers), list(warnings.filters))
print(sorted({{name.split(".")[0] for name in sys.modules}}))
print(before[:3] == after[:3])
"""


def _imported(more=""):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", _REPORT.format(more=more)],
        capture_output=True,
        text=True,
        check=True,
    )
    modules, unchanged = done.stdout.splitlines()
    assert unchanged == "True"
    return modules


_HEAVY = [
    "dask",
    "joblib",
    "matplotlib",
    "mlflow",
    "pandas",
    "polars",
    "reusable_holdout_mlflow",
    "scipy",
    "sklearn",
    "sqlalchemy",
    "tqdm",
]
_ANSWERS = (
    "from reusable_holdout import ReusableHoldout; "
    "guard = ReusableHoldout(None, [0, 1] * 2_000, tolerance=0.2, queries=5, "
    "ledger={ledger!r}, allow={{'no witness'}}); "
    "guard.evaluate([0, 1] * 2_000, prior=0.9); "
)


def _loaded(more, *, among):
    modules = ast.literal_eval(_imported(more))
    return [name for name in among if name in modules]


def test_importing_the_package_imports_no_library_but_numpy():
    assert _loaded("", among=[*_HEAVY, "numpy"]) == ["numpy"]


def test_the_guards_class_needs_numpy_alone():
    assert _loaded("from reusable_holdout import *", among=[*_HEAVY, "numpy"]) == ["numpy"]


def test_a_plan_needs_no_library_but_numpy_and_scipy():
    plan = "reusable_holdout.Plan(rows=10_000, queries=100, tolerance=0.05)"
    assert _loaded(plan, among=_HEAVY) == ["scipy"]


def test_guarding_predictions_needs_no_library_but_numpy_and_scipy(tmp_path):
    for ledger in (None, str(tmp_path / "guard.db")):
        assert _loaded(_ANSWERS.format(ledger=ledger), among=_HEAVY) == ["scipy"]


def test_guarding_predictions_does_not_import_scipys_optimisers():
    _imported(_ANSWERS.format(ledger=None) + "assert 'scipy.optimize' not in sys.modules")


def test_a_pickle_brings_the_modules_it_needs():
    plan = reusable_holdout.Plan(rows=10_000, queries=100, tolerance=0.05)
    program = f"import pickle; print(pickle.loads({pickle.dumps(plan)!r}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"{plan}\n"


_WITHOUT_EXTRAS = """
import importlib, pkgutil, sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"matplotlib", "mlflow", "polars", "hypothesis", "pytest"}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing())
import reusable_holdout
for module in pkgutil.walk_packages(reusable_holdout.__path__, "reusable_holdout."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
        print(module.name)
"""


def test_every_core_module_imports_without_extras():
    done = subprocess.run([sys.executable, "-c", _WITHOUT_EXTRAS], capture_output=True, text=True, check=True)
    assert len(done.stdout.split()) > 50


def test_public_names_are_sorted_and_exist():
    assert reusable_holdout.__all__ == sorted(reusable_holdout.__all__)
    for name in reusable_holdout.__all__:
        assert getattr(reusable_holdout, name) is not None


def test_every_public_name_is_documented():
    for name in reusable_holdout.__all__:
        assert getattr(reusable_holdout, name).__doc__, name


_PACKAGES = [
    "",
    ".certainty",
    ".guard",
    ".ledger",
    ".mechanisms",
    ".metrics",
    ".noise",
    ".plan",
    ".registry",
    ".witness",
]


@pytest.mark.parametrize("package", _PACKAGES)
def test_every_public_name_is_listed_and_star_imported(package):
    module = importlib.import_module(f"reusable_holdout{package}")
    namespace = {}
    exec(f"from {module.__name__} import *", namespace)
    assert set(module.__all__) <= set(dir(module))
    assert set(module.__all__) <= namespace.keys()
    assert all(namespace[name] is getattr(module, name) for name in module.__all__)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Guard'"):
        _ = reusable_holdout.Guard


def test_a_deferred_module_becomes_one_when_it_is_used():
    program = (
        "import sys, types\n"
        "from reusable_holdout.deferred import special\n"
        "assert type(special) is not types.ModuleType and 'scipy' not in sys.modules\n"
        "import scipy.special\n"
        "assert special.gammaln is scipy.special.gammaln and type(special) is types.ModuleType\n"
        "assert not hasattr(special, 'no_such_function')\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
