"""An attacker with a shell, under another user than the box's: it tries to get in, and reports on each attempt.

python -m intruder < case.json
"""

import json
import resource
import sys

from intruder.budget import try_budget
from intruder.case import CASE, begin
from intruder.commands import try_commands
from intruder.door import try_socket
from intruder.files import try_files
from intruder.messages import try_messages
from intruder.process import try_process

GROUPS = {
    "files": try_files, "process": try_process, "commands": try_commands, "socket": try_socket,
    "messages": try_messages, "budget": try_budget,
}  # fmt: skip

begin(json.load(sys.stdin))
_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 4_096), most))
for group in CASE.groups:
    GROUPS[group]()
