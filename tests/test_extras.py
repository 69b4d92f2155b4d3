"""A plain install is enough, and whoever needs more is told which extra has it."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from reusable_holdout.errors import MissingExtraError

_ROOT = Path(__file__).parent.parent
_PROJECT = tomllib.loads((_ROOT / "pyproject.toml").read_text())["project"]
_EXTRAS = _PROJECT["optional-dependencies"]

_WITHOUT = """
import json, sys
from importlib.machinery import PathFinder
missing = set(json.loads(sys.argv[1]))

class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in missing else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Without
"""
_EACH = """
for library, (_, program) in json.loads(sys.argv[2]).items():
    missing = {library}
    for name in list(sys.modules):  # as in a new process
        if name.split(".")[0] == library or name.startswith("reusable_holdout"):
            del sys.modules[name]
    try:
        exec(program)
    except ImportError as error:
        print(library, type(error).__name__, error)
"""
_MODULES = {
    "psycopg[binary]": "psycopg",
    "python-multipart": "python_multipart",
    "markdown-it-py": "markdown_it",
    "inspect-ai": "inspect_ai",
    "confusable-homoglyphs": "confusable_homoglyphs",
}

_NEEDED = {  # what others here import comes first
    "matplotlib": ("plot", "from reusable_holdout.plotting import pyplot; pyplot()"),
    "mlflow": ("mlflow", "import reusable_holdout_mlflow"),
    "mcp": ("mcp", "from reusable_holdout_box.mcp import make_server; make_server(None, None)"),
    "optuna": ("optuna", "import reusable_holdout_optuna"),
    "inspect_ai": ("inspect", "import reusable_holdout_evals.inspect"),
    "lightgbm": (
        "callbacks",
        "from reusable_holdout_callbacks import LightGBMCallback; LightGBMCallback(None)",
    ),
    "xgboost": ("callbacks", "from reusable_holdout_callbacks import XGBoostCallback"),
    "psycopg": (
        "postgresql",
        "from reusable_holdout.ledger.storage import SqlLedger; SqlLedger('postgresql+psycopg://nobody@127.0.0.1:1/none')",
    ),
    "pyarrow": (
        "large",
        "from reusable_holdout import ParquetRows; open('rows.parquet', 'w').close(); ParquetRows('rows.parquet')",
    ),
    **dict.fromkeys(
        (
            "fastapi",
            "jinja2",
            "markdown_it",
            "httpx",
            "regex",
            "confusable_homoglyphs",
            "uvicorn",
            "python_multipart",
        ),
        ("leaderboard", "import reusable_holdout_leaderboard"),
    ),
}
_TOOLS = {"dev", "docs"}  # which nothing of the library imports
_ON_THE_WAY = {"dask": "its users bring it: only their own collections are asked for anything"}


def _without(missing, program, folder, *arguments):
    command = [sys.executable, "-c", _WITHOUT + program, json.dumps(missing), *map(json.dumps, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def _modules(extra):
    names = [re.split(r">=|<", one)[0] for one in _EXTRAS[extra]]
    return [_MODULES.get(name, name.split("[")[0]) for name in names]


def test_who_lacks_a_library_is_told_which_extra_has_it(tmp_path):
    done = _without([], _EACH, tmp_path, _NEEDED)
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    for library, (extra, _) in _NEEDED.items():
        assert library in _modules(extra)
        install = f'needs {library}, which cannot be imported; run pip install "reusable-holdout[{extra}]"'
        assert told[library].startswith("MissingExtraError "), library
        assert told[library].endswith(install)


def test_no_library_of_an_extra_is_forgotten():
    everything = {module for extra in _EXTRAS if extra not in _TOOLS for module in _modules(extra)}
    assert everything == _NEEDED.keys() | _ON_THE_WAY.keys()


_BOARD = "import reusable_holdout.cli as c; sys.exit(c.main(json.loads(sys.argv[2])))"


def test_a_command_whose_extra_is_missing_is_listed_and_says_what_to_install(tmp_path):
    install = 'run pip install "reusable-holdout[leaderboard]"'
    listed = _without(["httpx"], _BOARD, tmp_path, ["--help"])
    assert listed.returncode == 0, listed.stderr
    told = " ".join(listed.stdout.split())
    assert install in told
    assert "gate" in told
    for arguments in (["board"], ["board", "status"], ["board", "serve", "--workers", "2"]):
        refused = _without(["httpx"], _BOARD, tmp_path, arguments)
        assert (refused.returncode, refused.stdout) == (1, ""), refused.stderr
        assert refused.stderr.strip().endswith(install)


def test_a_command_imports_no_other_package_than_its_own(tmp_path):
    program = "import reusable_holdout.cli as c; c.main(['plan', '--rows', '900', '--queries', '9', '--charges', '1'])"
    done = _without([], f"{program}; print(*sys.modules, file=sys.stderr)", tmp_path)
    assert "reusable_holdout.plan" in done.stderr
    assert re.findall(r"reusable_holdout_(?:box|evals|leaderboard)\b", done.stderr) == []


def test_the_docs_name_every_extra():
    home = (_ROOT / "docs" / "index.md").read_text()
    assert [extra for extra in _EXTRAS if extra != "dev" and f"[{extra}]" not in home] == []


def test_a_missing_extra_is_an_import_error_too():
    with pytest.raises(ImportError) as caught:
        raise MissingExtraError("a picture", "matplotlib", "plot")
    assert caught.value.extra == "plot"


def _everything():
    return sorted({*_NEEDED, *_ON_THE_WAY, "polars", "distributed", "xgboost", "lightgbm", "pytest"})


def test_the_readmes_first_example_runs_on_a_plain_install(tmp_path):
    text = (_ROOT / "README.md").read_text()
    first = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)[0]
    done = _without(_everything(), first, tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.long("reusable_holdout")
def test_the_demo_prints_its_table_on_a_plain_install_and_says_how_to_get_the_picture(tmp_path):
    program = "import reusable_holdout.cli as c; sys.exit(c.main(['demo', '--out', 'out']))"
    done = _without(_everything(), program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "guarded holdout  0." in done.stdout
    assert "picture  none: a picture needs matplotlib" in done.stdout
    assert 'pip install "reusable-holdout[plot]"' in done.stdout
    assert not (tmp_path / "out" / "demo.png").exists()


def test_a_gates_parquet_files_name_the_extra(tmp_path):
    program = (
        "open('labels.parquet', 'w').close()\n"
        "from pathlib import Path\n"
        "from reusable_holdout_evals.gate.tables import read_labels\n"
        "read_labels(Path('labels.parquet'), id_column=None)"
    )
    done = _without(["pyarrow", "fastparquet"], program, tmp_path)
    assert 'run pip install "reusable-holdout[large]"' in done.stderr


def test_logs_packed_with_zstandard_name_the_extra(tmp_path):
    log = _ROOT / "tests" / "integrations" / "evals" / "readers" / "recorded" / "plain.eval"
    program = f"from reusable_holdout_evals import read_inspect; print(read_inspect({str(log)!r}))"
    done = _without(["pyarrow", "zstandard"], program, tmp_path)
    assert 'run pip install "reusable-holdout[large]"' in done.stderr
    assert _without(["zstandard"], program, tmp_path).stdout == "<ScoreTable: 6 rows, 2 repeats of match>\n"


def test_the_version_is_the_installed_ones():
    import reusable_holdout

    done = subprocess.run(
        [sys.executable, "-m", "reusable_holdout", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"reusable-holdout {reusable_holdout.__version__}\n"


def test_the_classifiers_name_the_pythons_that_are_allowed():
    named = [one.rpartition(" ")[2] for one in _PROJECT["classifiers"] if "Python :: 3." in one]
    assert _PROJECT["requires-python"] == f">={named[0]}"
