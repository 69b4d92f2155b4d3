"""The pages' code runs and prints what they say, their commands exist, what they name exists."""

import codeop
import contextlib
import gc
import os
import re
import shlex
import shutil
import sys
import warnings
from pathlib import Path

import pytest
from documents.pages import as_shown, blocks, not_as_shown, pages, run, with_output
from long_tests import GUARD

from reusable_holdout import Plan
from reusable_holdout.cli import main
from reusable_holdout.registry import registry_of_its_own

_ROOT = Path(__file__).parent.parent
_TEXT = (_ROOT / "README.md").read_text()
_NEEDED = {
    "inspect-and-lm-eval.md": ["inspect_ai"],
    "leaderboard.md": ["fastapi", "httpx"],
    "training-loops.md": ["optuna", "xgboost"],
}
_MEASURED = (_ROOT / "examples" / "README.md").read_text()
_DOCS = "".join(page.read_text() for page in sorted((_ROOT / "docs").glob("*.md")))
_BOARD = "http://127.0.0.1:8000"
_LONG = {  # pages of which most of the time is a library's, and what of ours they are about
    "docs/inspect-and-lm-eval.md": "integrations/reusable_holdout_evals/inspect",
    "docs/mlflow.md": "integrations/reusable_holdout_mlflow",
    "docs/training-loops.md": "integrations/reusable_holdout_optuna",
}


def _about(page):
    """Marks of a page: what its code rests on, if it takes long."""
    if page not in _LONG:
        return ()
    return pytest.mark.long(
        page, *GUARD, _LONG[page], "integrations/reusable_holdout_sklearn", "tests/documents"
    )


@pytest.fixture(autouse=True)
def registry():
    """As a reader has one, and a process for each page."""
    with registry_of_its_own():
        yield


@pytest.fixture(autouse=True)
def mlflow_as_it_was():
    """A page may say where MLflow logs to, for its reader's whole process."""
    yield
    if "mlflow" in sys.modules:
        import mlflow

        mlflow.set_tracking_uri(None)
        mlflow.tracking.fluent._active_experiment_id = None
        os.environ.pop("MLFLOW_EXPERIMENT_ID", None)


@pytest.fixture(autouse=True)
def inspect_writes_here(request, tmp_path_factory, monkeypatch):
    """Its traces and the samples that are running; streams that it leaves open are nobody else's warning."""
    home = tmp_path_factory.mktemp("inspect")
    monkeypatch.setenv("XDG_DATA_HOME", str(home))
    monkeypatch.setenv("INSPECT_TRACE_FILE", str(home / "trace.log"))
    yield
    if "inspect" in request.node.name:  # no other page leaves streams, and to look for them takes long
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()


def _put_evaluations(folder):
    """What evaluation tools wrote, under the names that pages read it by."""
    recorded = _ROOT / "tests" / "integrations" / "evals" / "readers" / "recorded"
    shutil.copy(recorded / "several.eval", folder / "new.eval")
    shutil.copytree(recorded / "lm_eval", folder / "lm_eval")


@pytest.mark.filterwarnings("ignore::UserWarning:mlflow.*")  # of schemas and type hints
@pytest.mark.filterwarnings("ignore:.*type hint:UserWarning", "ignore:X does not have valid feature names")
@pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning")  # of Inspect
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("page", [pytest.param(one, marks=_about(one)) for one in pages()])
def test_the_code_of_every_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    name = Path(page).name
    monkeypatch.chdir(tmp_path)
    for library in _NEEDED.get(name, ()):
        pytest.importorskip(library)
    _put_evaluations(tmp_path)
    text = (_ROOT / page).read_text()
    with _board(tmp_path) if _BOARD in text and "```text" in text else contextlib.nullcontext(_BOARD) as url:
        printed = run(text.replace(_BOARD, url), name=name)
    capsys.readouterr()
    assert not_as_shown(text, printed) == []


@pytest.mark.parametrize(
    "page",
    [
        page for page in pages() if page != "docs/inspect-and-lm-eval.md"
    ],  # a solver is a function within another
)
def test_the_code_of_every_page_can_be_pasted_into_python(page):
    """Its console ends a block of indented lines at an empty line, and nowhere else."""
    for block in blocks((_ROOT / page).read_text()):
        if block.language == "python":
            typed = []
            for line in [*block.code.splitlines(), ""]:
                typed.append(line)
                if codeop.compile_command("\n".join(typed)) is not None:
                    typed = []
            assert typed == []


@contextlib.contextmanager
def _board(folder):
    """The example competition in a folder, served as ``./board`` does."""
    from board_servers import served
    from reusable_holdout_leaderboard.command.serving import make_example
    from reusable_holdout_leaderboard.settings import Settings

    data = folder / "leaderboard-data"
    make_example(data)
    with served(Settings(folder=data)) as server:
        yield server.url


def test_a_block_of_text_is_what_the_block_before_it_prints():
    text = (
        "```python\nprint(1)\nprint(2)\n```\n\n```text\n1\n...\n```\n"
        "```bash\nls\n```\n"
        "```python\nprint(3)\n```\n\nWords.\n\n```text\n4\n```\n"
        "```bash\nreusable-holdout --version; echo $?\n```\n\n```text\nold\n```\n"
    )
    assert [block.text for block in blocks(text)] == ["1\n...\n", None, "old\n"]
    printed = run(text, name="a page")
    assert printed[:2] == ["1\n2\n", "3\n"]
    assert printed[2].endswith("\n0\n")
    assert as_shown("1\n2\n", "1\n...\n") == "1\n...\n"
    assert as_shown("7\n2\n", "1\n...\n") == "7\n...\n"
    assert as_shown("1\n2\n", "1\n") == "1\n2\n"
    assert with_output(text, printed) == text.replace("old\n", printed[2])
    (wrong,) = not_as_shown(text, printed)
    assert "--version" in wrong
    assert not_as_shown(with_output(text, printed), printed) == []


def test_the_readme_is_short_and_shows_code_with_its_output_on_the_first_screen():
    assert len(_TEXT.split()) <= 850
    assert max(map(len, _TEXT.splitlines())) <= 120
    first, *_ = blocks(_TEXT)
    assert first.text
    assert _TEXT[: _TEXT.index(first.text)].count("\n") <= 45
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 16


def test_the_widths_in_the_readme_are_those_of_plans():
    rows = re.findall(r"^\| ([\d,]+) \| (.*?) \| ([\d.]+) \| ([\d.]+) \|$", _TEXT, flags=re.MULTILINE)
    assert len(rows) == 4
    for count, agreed, final, look in rows:
        plan = Plan(rows=int(count.replace(",", "")), queries=100, charges=3, estimate=0.85)
        widths = [
            f"{one:.3f}"
            for one in (plan.agreed_half_width(charges=0), plan.final_half_width(), plan.one_look)
        ]
        assert [*re.findall(r"[\d.]{5}", agreed), final, look] == widths
        assert agreed.startswith("refused") is plan.vacuous


def test_the_two_commands_exist():
    for name in ("demo", "check", "board"):
        assert f"./{name}" in (_TEXT if name != "board" else _DOCS)
        assert (_ROOT / name).stat().st_mode & 0o111


def test_the_shell_commands_are_ones_the_program_knows(capsys):
    shells = re.findall(r"```bash\n(.*?)```", _TEXT + _DOCS, flags=re.DOTALL)
    joined = [shell.replace("\\\n", " ") for shell in shells]
    lines = [line for shell in joined for line in shell.splitlines() if line.startswith("reusable-holdout")]
    assert len(lines) >= 20
    for command in sorted({shlex.split(line, comments=True)[1] for line in lines}):
        with pytest.raises(SystemExit) as ended:
            main([command, "--help"])
        assert ended.value.code == 0
    capsys.readouterr()


def test_every_example_is_a_script_with_a_docstring():
    scripts = sorted((_ROOT / "examples").glob("*.py"))
    assert len(scripts) >= 4
    for script in scripts:
        assert script.read_text().startswith('"""')
        assert script.stem in _DOCS + _MEASURED or script.stem in {"quickstart", "cross_validation_loop"}


def test_the_scripts_that_figures_come_from_exist():
    named = re.findall(r"(?<!tests/)\bexamples/((?!test_)[a-z_/]+\.py)", _TEXT + _DOCS + _MEASURED)
    assert len(set(named)) >= 8
    assert [script for script in named if not (_ROOT / "examples" / script).exists()] == []
