"""Release gates in a folder of the test's own, by the commands."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from reusable_holdout.cli import main
from reusable_holdout.guard import released

ACCEPTED, REJECTED, HALTED, BAD_INPUT = 0, 1, 2, 3
RECORDED = Path(__file__).parent / "readers" / "recorded"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(folder):
    """Write a table to CSV, Parquet or JSON in the working folder."""

    def to(name, **columns):
        frame, ending = pd.DataFrame(columns), name.rpartition(".")[2]
        if ending == "csv":
            frame.to_csv(name, index=False)
        elif ending == "parquet":
            frame.to_parquet(name)
        else:
            frame.to_json(name, orient="records", lines=ending == "jsonl")
        return name

    return to


@pytest.fixture
def gate(folder, capsys):
    """Run an action of the command; return its status, its output, and its errors on one line."""

    def run(action, *arguments):
        try:
            status = main(["gate", action, "--ledger", "gate.db", *map(str, arguments)])
        except SystemExit as ended:
            status = ended.code
        text = capsys.readouterr()
        return SimpleNamespace(status=status, out=text.out, err=" ".join(text.err.split()), raw=text.err)

    return run


@pytest.fixture
def make(gate):
    """Make a gate; return the output."""

    def run(*arguments):
        done = gate("init", *arguments)
        assert done.status == 0, done.err
        return done.out

    return run


def history():
    return released("gate.db").history
