"""Constraints for pip: each dependency and extra of pyproject.toml at the lowest version it declares."""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]
extras = project["optional-dependencies"]
wanted = [*project["dependencies"], *(one for name in extras if name != "dev" for one in extras[name])]
for one in wanted:
    name, lowest = re.match(r"([\w-]+)(?:\[[^]]*\])?>=([\w.]+)", one).groups()
    sys.stdout.write(f"{name}=={lowest}\n")
