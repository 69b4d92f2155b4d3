"""A search of all that an evaluation writes: no score, no target, and no explanation of a scorer is in it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("inspect_ai")

from integrations.evals.inspect.everything import found_in, texts_in
from integrations.evals.inspect.judged_tasks import IDS, secrets_of

pytestmark = pytest.mark.long("integrations/reusable_holdout_evals/inspect")
_SECRETS = [secret for name in IDS for secret in secrets_of(name)]
_OUTPUT = "output"


def evaluated(kind, folder):
    """Return all that an evaluating process left: logs, the samples' buffer, traces, and its output."""
    home = folder / "home"
    home.mkdir(parents=True)
    places = {name: str(home / name) for name in ("XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
    places |= {"HOME": str(home), "INSPECT_DISPLAY": "plain", "PYTHONPATH": os.pathsep.join(sys.path)}
    program = [sys.executable, str(Path(__file__).with_name("judged_tasks.py")), kind]
    with (folder / _OUTPUT).open("wb") as output:
        said = {"stdout": output, "stderr": subprocess.STDOUT}
        subprocess.run(program, cwd=folder, env=os.environ | places, check=True, **said)
    texts = texts_in(folder)
    for what in ("logs/", "buffer/", "home/XDG_DATA_HOME/inspect_ai/traces/"):
        assert any(name.startswith(what) for name in texts), what
    return texts


def test_the_log_the_buffer_the_trace_and_the_output_have_nothing(tmp_path):
    texts = evaluated("guarded", tmp_path)
    assert "status success" in texts[_OUTPUT]
    assert "'answer', 'charged', 'charges_left', 'high', 'low'" in texts[_OUTPUT]
    assert found_in(texts, _SECRETS) == {}
    (log,) = (text for name, text in texts.items() if name.startswith("logs/"))
    assert all(f"say {name}" in log for name in IDS)  # the developer sees what was asked and answered


def test_the_same_search_finds_them_where_nothing_is_guarded(tmp_path):
    texts = evaluated("plain", tmp_path)
    found = found_in(texts, _SECRETS)
    for what in ("logs/", "buffer/", "home/XDG_DATA_HOME/inspect_ai/traces/", _OUTPUT):
        assert max(count for name, count in found.items() if name.startswith(what)) > len(IDS), what


@pytest.mark.parametrize(
    ("kind", "words"), [("failing", "the scorer failed with ValueError"), ("misfit", "lie in")]
)
def test_what_fails_is_said_without_them(kind, words, tmp_path):
    texts = evaluated(kind, tmp_path)
    assert "status error" in texts[_OUTPUT]
    (log,) = (text for name, text in texts.items() if name.startswith("logs/"))
    assert words in log
    assert "nothing was charged" in log
    assert found_in(texts, _SECRETS) == {}
