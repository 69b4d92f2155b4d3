"""Evaluations that write nothing outside a test's folder."""

import gc
import warnings
from importlib.util import find_spec

import pytest

collect_ignore = (
    [] if find_spec("inspect_ai") else ["everything.py", "judged_tasks.py"]
)  # for their docstrings


@pytest.fixture(scope="session")
def inspects_home(tmp_path_factory):
    """Folder of Inspect's traces and buffers; Inspect opens a trace once in a process."""
    return tmp_path_factory.mktemp("inspect")


@pytest.fixture
def evaluate(tmp_path, inspects_home, monkeypatch):
    """Evaluate a task with a scripted model, and read the log from its file, as a developer does."""
    from inspect_ai import eval as evaluate
    from inspect_ai.log import read_eval_log
    from integrations.evals.inspect.judged_tasks import model

    for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(inspects_home))
    monkeypatch.setenv("INSPECT_TRACE_FILE", str(inspects_home / "trace.log"))
    monkeypatch.chdir(tmp_path)

    def of(task, **options):
        options = {"model": model(), "log_dir": "logs", "display": "none"} | options
        (log,) = evaluate(task, **options)
        return read_eval_log(log.location)

    yield of
    with warnings.catch_warnings():  # close streams that Inspect leaves open, before another test is blamed
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
