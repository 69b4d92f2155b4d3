"""Plugins of pytest, for the processes in which tests run: one watches tests, one runs those that were chosen."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from mutation import noting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Say = Callable[[dict[str, Any]], None]

__all__ = ["Chosen", "Watching"]


class Watching:
    """Says how long each test takes, and lets :mod:`mutation.noting` know which one runs.

    Calls while modules are imported and shared fixtures are set up are those of all tests of the file.
    """

    def __init__(self, say: Say, package: str, servers: list[str]) -> None:
        self._say, self._package, self._servers = say, package, set(servers)
        self._seconds: dict[str, float] = {}
        self._outcomes: dict[str, str] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            if self._servers & set(getattr(item, "fixturenames", ())):
                self._say({"server": item.nodeid})

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        _forget_results(self._package)
        noting.begin(item.nodeid)
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        if fixturedef.scope == "function":
            return (yield)
        test, began = request.node.nodeid, time.monotonic()
        item = os.environ[noting.TEST]
        noting.begin("")
        try:
            return (yield)
        finally:
            noting.begin(item)
            self._say({"shared": time.monotonic() - began, "of": test})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = report.nodeid
        self._seconds[test] = self._seconds.get(test, 0.0) + report.duration
        if report.when == "call" or report.outcome != "passed":
            self._outcomes[test] = report.outcome
        if report.when == "teardown":
            outcome = self._outcomes.get(test, "skipped")
            self._say({"test": test, "outcome": outcome, "seconds": self._seconds[test]})
            noting.begin("")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say({"test": report.nodeid, "outcome": "failed", "seconds": 0.0})


class Chosen:
    """Runs some tests in the order given, and says which one begins and which fails."""

    def __init__(self, say: Say, tests: list[str]) -> None:
        self._say = say
        self._places = {test: place for place, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        chosen = [item for item in items if item.nodeid in self._places]
        items[:] = sorted(chosen, key=lambda item: self._places[item.nodeid])

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._say({"begins": nodeid})

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._say({"failed": report.nodeid, "why": _first_line(report)})

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say({"failed": report.nodeid, "why": _first_line(report)})


def _first_line(report: Any) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = (str(report.longrepr) if crash is None else crash.message).strip().splitlines()
    return lines[-1 if crash is None else 0][:200] if lines else ""


def _forget_results(package: str) -> None:
    """Empty the package's caches: otherwise only the first test of many would be seen to call what they keep.

    A cache of one result is what makes a function run once in a process; those are left as they are.
    """
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] == package:
            for value in list(vars(module).values()):
                with contextlib.suppress(Exception):
                    if value.cache_info().maxsize != 1:
                        value.cache_clear()
