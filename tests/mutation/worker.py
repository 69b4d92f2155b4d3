"""A process that has imported the libraries, but nothing of ours, and forks a child for each run of tests.

Reads jobs from its input, a line of JSON each, and answers each with a line of JSON. It is started in its own copy of
the tree, which is all that its children and theirs can import.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutation import noting
from mutation.plugins import Chosen, Watching
from mutation.tree import digest

_OPTIONS = ["-q", "--tb=native", "-p", "no:cacheprovider", "-p", "no:schemathesis", "-p", "no:xdist"]
_OPTIONS += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # Hypothesis has been imported
_FINE = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
_COLLECTING_SECONDS = 30.0
_MOST_BYTES = 8 << 30  # a mutant that never stops to collect is ended before the machine is


def main() -> None:
    """Answer jobs until there are no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for library in sys.argv[1:]:
        importlib.import_module(library)
    if "hypothesis" in sys.modules:
        _settle_hypothesis()
    for line in sys.stdin:
        job = json.loads(line)
        answers.write(json.dumps(_watch(job) if job["kind"] == "watch" else _try(job)) + "\n")


def _settle_hypothesis() -> None:
    """Same examples every time; no time is spent on making a failure small."""
    import hypothesis

    phases = (hypothesis.Phase.explicit, hypothesis.Phase.generate)
    every = list(hypothesis.HealthCheck)
    hypothesis.settings.register_profile(
        "mutation", derandomize=True, database=None, deadline=None, phases=phases, suppress_health_check=every
    )
    hypothesis.settings.load_profile("mutation")


def _watch(job: dict[str, Any]) -> dict[str, Any]:
    """Run files of tests; how long each test takes, and which blocks of code it reaches."""
    notes = Path(tempfile.gettempdir()) / "reached"
    notes.touch()
    notes.chmod(0o666)  # a test may start a process that runs as somebody else
    os.environ[noting.FILE] = str(notes)
    noting.begin("")
    found: dict[str, Any] = {"tests": [], "shared": [], "servers": [], "reached": {}}

    def work(say: Callable[[dict[str, Any]], None]) -> None:
        plugin = Watching(say, job["package"], job["servers"])
        say({"ended": int(pytest.main([*_OPTIONS, *job["files"]], plugins=[plugin]))})

    for message in _child(work, lambda _: job["seconds"]):
        if "test" in message:
            found["tests"].append(message)
        elif "shared" in message:
            found["shared"].append(message)
        elif "server" in message:
            found["servers"].append(message["server"])
        elif message.get("ended") not in _FINE:
            raise RuntimeError(
                f"pytest must run {job['files']}; it does not: {_output().read_text()[-4000:]}"
            )
    for line in sorted(set(notes.read_text().splitlines())):
        test, block = line.split("\t")
        found["reached"].setdefault(test, []).append(block)
    _clean()
    return found


def _try(job: dict[str, Any]) -> dict[str, Any]:
    """Run chosen tests until one fails or takes too long, with a file's source replaced."""
    path, limits = Path(job["file"]), dict(job["tests"])
    original = path.read_text()
    if digest(original) != job["of"]:
        raise RuntimeError(
            f"the tree must stay as it is while mutants are tried; {path} has changed; run it again"
        )
    files = sorted({test.split("::")[0] for test in limits})

    def work(say: Callable[[dict[str, Any]], None]) -> None:
        code = pytest.main([*_OPTIONS, "-x", *files], plugins=[Chosen(say, list(limits))])
        say({"ended": int(code)})

    answer: dict[str, Any] = {"outcome": "survived", "ran": 0, "by": "", "why": ""}
    path.write_text(job["source"])
    try:
        for message in _child(work, lambda test: limits.get(test, _COLLECTING_SECONDS)):
            answer["ran"] += "begins" in message
            if "failed" in message:
                answer |= {"outcome": "killed", "by": message["failed"], "why": message["why"]}
            elif "late" in message:
                answer |= {"outcome": "timed out", "by": message["late"]}
            elif "died" in message:
                answer |= {"outcome": "killed", "by": message["died"], "why": "the process died"}
            elif message.get("ended") == pytest.ExitCode.USAGE_ERROR:
                refusal = _output().read_text()[-4000:]
                if _can_be_imported(job["file"]):
                    raise RuntimeError(f"pytest must run {files}; it refuses: {refusal}")
                answer |= {"outcome": "killed", "by": "its import", "why": refusal.strip().split("\n")[-1]}
    finally:
        path.write_text(original)
    _clean()
    return answer


def _can_be_imported(file: str) -> bool:
    """Whether a process can import a module as it is now; pytest's settings name classes of ours."""
    module = ".".join(Path(file).with_suffix("").parts).removesuffix(".__init__")

    def work(say: Callable[[dict[str, Any]], None]) -> None:
        importlib.import_module(module)
        say({"ended": 0})

    return "ended" in _child(work, lambda _: _COLLECTING_SECONDS)[-1]


def _child(work: Callable[[Any], None], limit: Callable[[str], float]) -> list[dict[str, Any]]:
    """What a forked child says; it and all it started are ended when it is done or a test exceeds its limit."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(reading)
        _run(work, writing)
    os.close(writing)
    messages: list[dict[str, Any]] = []
    test, rest, deadline = "", b"", time.monotonic() + limit("")
    while not (messages and messages[-1].keys() & {"ended", "late", "died"}):
        ready, _, _ = select.select([reading, sys.stdin], [], [], max(0.0, deadline - time.monotonic()))
        if sys.stdin in ready:  # no job comes before the last one's answer: the run was ended
            os.killpg(child, signal.SIGKILL)
            sys.exit("ended while a mutant was tried")
        if not ready:
            messages.append({"late": test})
            continue
        content = os.read(reading, 1 << 16)
        if not content:
            messages.append({"died": test})
        *lines, rest = (rest + content).split(b"\n")
        for line in lines:
            messages.append(json.loads(line))
            if "begins" in messages[-1]:
                test = messages[-1]["begins"]
                deadline = time.monotonic() + limit(test)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    os.close(reading)
    return messages


def _run(work: Callable[[Any], None], writing: int) -> None:
    """Of the child: work, and leave without cleaning up what the parent will use on."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(_output(), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)

    def say(message: dict[str, Any]) -> None:
        os.write(writing, json.dumps(message).encode() + b"\n")

    resource.setrlimit(resource.RLIMIT_AS, (_MOST_BYTES, _MOST_BYTES))
    try:
        work(say)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(0)


def _output() -> Path:
    return Path(tempfile.gettempdir()) / "output"


def _clean() -> None:
    """Remove what tests left in the folder for temporary files, which is this worker's own."""
    for path in Path(tempfile.gettempdir()).iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
