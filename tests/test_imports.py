"""Importing is cheap and has no side effect."""

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


@pytest.mark.parametrize("optional", ["matplotlib", "mlflow", "sklearn", "polars", "reusable_holdout_mlflow"])
def test_importing_the_package_does_not_import(optional):
    assert f"'{optional}'" not in _imported()


def test_guarding_predictions_needs_no_optional_library():
    more = (
        "from reusable_holdout import ReusableHoldout, Plan; "
        "g = ReusableHoldout(None, [0, 1] * 2_000, tolerance=0.2, queries=5); "
        "g.evaluate_predictions([0, 1] * 2_000, prior=0.9); str(g.plan)"
    )
    modules = _imported(more)
    for optional in ("matplotlib", "mlflow", "sklearn", "polars"):
        assert f"'{optional}'" not in modules


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
