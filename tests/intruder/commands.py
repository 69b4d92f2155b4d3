"""Attempts to run the commands of the box's owner."""

import os
from functools import partial

from intruder.case import CASE, own, ran, report

PROGRAMS = {
    "open the box": "from pathlib import Path; from reusable_holdout_box.folder import _rows, _settings; p = Path({private!r}); print(_rows(p / 'labels.csv', _settings(p)))",
    "open the guard": "from reusable_holdout.guard.releases import released; print(released({ledger!r}))",
    "read the key": "from pathlib import Path; from reusable_holdout.ledger.key_file import read_key_file; print(read_key_file(Path({ledger!r} + '.key')))",
    "begin its witness anew": "open({ledger!r} + '.heads', 'r+b').close(); print('opened')",
    "run it with a settings file of one's own": "open({private!r} + '/box.json', 'r+b').close(); print('opened')",
}


def try_commands():
    ledger = os.path.join(CASE.private, "guard.db")
    tool = [CASE.python, "-m", "reusable_holdout"]
    commands = {
        "history of the ledger": [*tool, "history", ledger],
        "report of the ledger": [*tool, "report", ledger, "--out", own("report.html")],
        "verify the ledger": [*tool, "verify", ledger],
    }
    for name, program in PROGRAMS.items():
        commands[name] = [CASE.python, "-c", program.format(private=CASE.private, ledger=ledger)]
    report("commands", {name: partial(ran, *command) for name, command in commands.items()})
    environments = {
        "REUSABLE_HOLDOUT_REGISTRY": own("registry"),
        "REUSABLE_HOLDOUT_BOX": os.path.dirname(CASE.private),
        "PYTHONPATH": f"{CASE.work}:{os.environ['PYTHONPATH']}",
        "HOME": CASE.work,
        "TZ": "Pacific/Kiritimati",
        "PYTHONMALLOC": "malloc",
        "LD_PRELOAD": "/lib/none.so",
        "FAKETIME": "+10y",
    }
    history = partial(ran, *tool, "history", ledger)
    several = {f"history with {name}": partial(history, **{name: one}) for name, one in environments.items()}
    report("commands", several)
