"""The README's code runs, its commands exist, what it names exists."""

import gc
import os
import re
import shlex
import shutil
import sys
import warnings
from pathlib import Path

import pytest

from reusable_holdout.cli import main
from reusable_holdout.registry import VARIABLE

_ROOT = Path(__file__).parent.parent
_TEXT = (_ROOT / "README.md").read_text()
_NEEDED = {"inspect.md": ["inspect_ai"]}
_MEASURED = (_ROOT / "examples" / "README.md").read_text()


def _blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", _TEXT, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def registry(tmp_path, monkeypatch):
    """As a reader has one."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "registry"))


@pytest.fixture(autouse=True)
def mlflow_as_it_was(monkeypatch):
    """A page may say where MLflow logs to, for its reader's whole process."""
    monkeypatch.setenv(
        "MLFLOW_GENAI_EVAL_MAX_WORKERS", "1"
    )  # SQLite lets one write, and more wait by the second
    yield
    if "mlflow" in sys.modules:
        import mlflow

        mlflow.set_tracking_uri(None)
        mlflow.tracking.fluent._active_experiment_id = None
        os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


@pytest.fixture(autouse=True)
def inspect_writes_here(tmp_path_factory, monkeypatch):
    """Its traces and the samples that are running; streams that it leaves open are nobody else's warning."""
    home = tmp_path_factory.mktemp("inspect")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("INSPECT_TRACE_FILE", str(home / "trace.log"))
    yield
    if "inspect_ai" in sys.modules:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def test_the_python_blocks_run_one_after_another(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    namespace = {}
    blocks = _blocks("python")
    assert len(blocks) >= 4
    for block in blocks:
        exec(compile(block, "README.md", "exec"), namespace)
    capsys.readouterr()


def _put_evaluations(folder):
    """What evaluation tools wrote, under the names that pages read it by."""
    recorded = _ROOT / "tests" / "readers" / "recorded"
    shutil.copy(recorded / "several.eval", folder / "new.eval")
    shutil.copytree(recorded / "lm_eval", folder / "lm_eval")


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*")  # of schemas and type hints
@pytest.mark.filterwarnings("ignore:.*type hint:UserWarning", "ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")  # of Inspect
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", sorted(path.name for path in (_ROOT / "docs").glob("*.md")))
def test_the_python_blocks_of_every_page_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for library in _NEEDED.get(page, ()):
        pytest.importorskip(library)
    _put_evaluations(tmp_path)
    namespace = {}
    text = (_ROOT / "docs" / page).read_text()
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, page, "exec"), namespace)
    capsys.readouterr()


def test_the_two_commands_exist():
    for name in ("demo", "check", "board"):
        assert f"./{name} " in _TEXT
        assert (_ROOT / name).stat().st_mode & 0o111


def test_the_shell_commands_are_ones_the_program_knows(capsys):
    lines = [
        line
        for block in _blocks("bash")
        for line in block.splitlines()
        if line.startswith("reusable-holdout")
    ]
    assert len(lines) >= 5
    for line in lines:
        command = shlex.split(line, comments=True)[1]
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    capsys.readouterr()


def test_every_example_is_a_script_with_a_docstring():
    scripts = sorted((_ROOT / "examples").glob("*.py"))
    assert len(scripts) >= 4
    for script in scripts:
        assert script.read_text().startswith('"""')
        assert script.stem in _TEXT + _MEASURED or script.stem in {"quickstart", "cross_validation_loop"}


def test_the_scripts_that_figures_come_from_exist():
    named = re.findall(r"(?<=examples/)[a-z_/]+\.py", _TEXT + _MEASURED)
    assert len(set(named)) >= 8
    assert [script for script in named if not (_ROOT / "examples" / script).exists()] == []
