"""The facts that an intruder gets, and its report on each attempt; it needs no library.

It knows the place of a box and texts of its secrets, so that it recognises a secret. It prints a line of JSON for each
attempt: group, name, true if it got in, and the evidence.
"""

import ctypes
import json
import os
import random
import subprocess
from types import SimpleNamespace

CASE = SimpleNamespace()
"""private, socket, pid, work, needles, rows, files, seed, weak, groups, python: filled in when it begins."""

LIBC = ctypes.CDLL(None, use_errno=True)


def begin(told):
    """Take the facts."""
    vars(CASE).update(told | {"needles": [bytes.fromhex(one) for one in told["needles"]]})
    random.seed(CASE.seed)


class NoError(Exception):
    """The attempt failed; its words are the evidence."""


def report(group, attempts):
    """Try each attempt, and print its result."""
    for name, attempt in attempts.items() if isinstance(attempts, dict) else attempts:
        try:
            found = attempt()
            got, evidence = bool(found), str(found) if found else "nothing"
        except NoError as failure:
            got, evidence = False, str(failure)
        except Exception as error:
            got, evidence = False, f"{type(error).__name__}: {error}"
        print(json.dumps([group, name, got, evidence[:200]]), flush=True)


def read(path):
    with open(path, "rb") as file:
        return file.read(1 << 20) or b"empty"


def opened(path, mode):
    """Open a file and close it again."""
    open(path, mode).close()
    return "opened"


def own(name):
    return os.path.join(CASE.work, f"{name}-{random.getrandbits(64):x}")


def ran(*command, **environment):
    around, nothing = {**os.environ, **environment}, subprocess.DEVNULL
    done = subprocess.run(command, env=around, stdin=nothing, capture_output=True, timeout=60, check=False)
    if done.returncode != 0:
        words = (done.stderr or done.stdout)[-120:].decode(errors="replace")
        raise NoError(f"{command[0]} ended with {done.returncode}: {words}")
    return done.stdout or b"done"


def told(done, what):
    """Raise the kernel's error if a system call failed."""
    if done < 0:
        raise NoError(f"{what}: {os.strerror(ctypes.get_errno())}")
    return f"{what} gave {done}"
