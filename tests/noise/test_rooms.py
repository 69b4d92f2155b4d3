"""A guard runs on `noise` alone: the packages that it is made of import no researcher's mechanism."""

import subprocess
import sys

CORE = ("noise", "guard", "plan", "certainty", "ledger", "registry", "report", "cli")
SCRIPT = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    room = importlib.import_module(f"reusable_holdout.{name}")
    for module in pkgutil.walk_packages(getattr(room, "__path__", []), f"{room.__name__}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
print(*[name for name in sys.modules if name.startswith("reusable_holdout.mechanisms")])
"""


def test_the_core_imports_no_mechanism():
    done = subprocess.run([sys.executable, "-c", SCRIPT, *CORE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
