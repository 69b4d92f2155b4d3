"""Modules of the examples, imported for one test."""

import importlib
import sys

import pytest
from examples.scripts import EXAMPLES


@pytest.fixture
def imported(monkeypatch):
    """Import a module of the examples by its name, and forget it and its package after the test."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    packages = set()

    def imported(name):
        packages.add(name.partition(".")[0])
        return importlib.import_module(name)

    yield imported
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        del sys.modules[name]
