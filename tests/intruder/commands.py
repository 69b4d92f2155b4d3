"""Attempts to do what the box's owner does."""

import os
import subprocess

from intruder.case import CASE, NoError, own, ran, report


def try_commands():
    python, ledger = CASE.python, os.path.join(CASE.private, "guard.db")
    home = os.path.dirname(CASE.private)
    tool = [python, "-m", "reusable_holdout"]
    commands = {
        "history of the ledger": [*tool, "history", ledger],
        "report of the ledger": [*tool, "report", ledger, "--out", own("report.html")],
        "verify the ledger": [*tool, "verify", ledger],
        "open the box": [
            python,
            "-c",
            f"from pathlib import Path; from reusable_holdout_box.folder import _rows, _settings; p = Path({CASE.private!r}); print(_rows(p / 'labels.csv', _settings(p)))",
        ],
        "open the guard": [
            python,
            "-c",
            f"from reusable_holdout.guard.releases import released; print(released({ledger!r}))",
        ],
        "read the key": [
            python,
            "-c",
            f"from pathlib import Path; from reusable_holdout.ledger.key_file import read_key_file; print(read_key_file(Path({ledger + '.key'!r})))",
        ],
        "begin its witness anew": [
            python,
            "-c",
            f"open({ledger + '.heads'!r}, 'r+b').close(); print('opened')",
        ],
        "run it with a settings file of one's own": [
            python,
            "-c",
            f"open({os.path.join(CASE.private, 'box.json')!r}, 'r+b').close(); print('opened')",
        ],
    }
    for name, command in commands.items():
        report("commands", name, lambda command=command: ran(*command))
    for name, more in {
        "REUSABLE_HOLDOUT_REGISTRY": {"REUSABLE_HOLDOUT_REGISTRY": own("registry")},
        "REUSABLE_HOLDOUT_BOX": {"REUSABLE_HOLDOUT_BOX": home},
        "PYTHONPATH": {"PYTHONPATH": f"{CASE.work}:{os.environ['PYTHONPATH']}"},
        "HOME": {"HOME": CASE.work},
        "TZ": {"TZ": "Pacific/Kiritimati"},
        "PYTHONMALLOC": {"PYTHONMALLOC": "malloc"},
        "LD_PRELOAD": {"LD_PRELOAD": "/lib/none.so"},
        "FAKETIME": {"FAKETIME": "+10y"},
    }.items():
        command = [*tool, "history", ledger]
        report(
            "commands",
            f"history with {name}",
            lambda command=command, more=more: with_environment(command, more),
        )


def with_environment(command, more):
    done = subprocess.run(
        command,
        env={**os.environ, **more},
        capture_output=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    if done.returncode != 0:
        raise NoError(done.stderr[-120:].decode(errors="replace"))
    return done.stdout or b"done"
