"""Attempts to read or stop the process that holds the labels."""

import contextlib
import ctypes
import os
import resource
import shutil
import signal
import subprocess
from functools import partial

from intruder.case import CASE, LIBC, NoError, opened, own, read, report, told

READABLE = ["environ", "maps", "smaps", "auxv", "pagemap", "io", "numa_maps", "personality", "syscall"]
SIGNALS = ["STOP", "CONT", "TERM", "INT", "HUP", "QUIT", "ABRT", "SEGV", "USR1", "KILL"]


def memory():
    """Search the memory of the box for a secret."""
    found = 0
    with open(f"/proc/{CASE.pid}/maps") as maps, open(f"/proc/{CASE.pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            if not rights.startswith("rw"):
                continue
            start, end = (int(one, 16) for one in place.split("-"))
            with contextlib.suppress(OSError, ValueError, OverflowError):
                memory.seek(start)
                piece = memory.read(min(end - start, 1 << 26))
                found += sum(needle in piece for needle in CASE.needles)
    return found


def an_address():
    try:
        with open(f"/proc/{CASE.pid}/maps") as maps:
            return int(next(line for line in maps if " rw" in line).split("-")[0], 16)
    except OSError:
        return ctypes.addressof(ctypes.create_string_buffer(16))


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]


def across(call):
    room = ctypes.create_string_buffer(16)
    here, there = Piece(ctypes.addressof(room), 16), Piece(an_address(), 16)
    if call == "process_vm_writev":  # what is there already
        across("process_vm_readv")
    done = getattr(LIBC, call)(CASE.pid, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
    return told(done, call)


def traced(request):
    LIBC.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    done = told(LIBC.ptrace(request, CASE.pid, None, None), "ptrace")
    if request != 16:
        LIBC.ptrace(0x4207, CASE.pid, None, None)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(CASE.pid, 0x40000000)
    LIBC.ptrace(17, CASE.pid, None, None)
    return done


def system_call(number, *arguments):
    return told(LIBC.syscall(number, *map(ctypes.c_long, arguments)), f"system call {number}")


def limited():
    before = resource.prlimit(CASE.pid, resource.RLIMIT_CORE)
    resource.prlimit(CASE.pid, resource.RLIMIT_CORE, before)
    return f"core {before}"


def dumped():
    """Make it dump its memory, if its limits allow that."""
    with open(f"/proc/{CASE.pid}/limits") as limits:
        line = next(line for line in limits if "core" in line)
    if line.split()[4:6] == ["0", "0"]:
        raise NoError("no core may be dumped: " + " ".join(line.split()))
    return line


def signalled(number):
    """Send a signal; in the weak case to a process of our own, because the box is still needed."""
    with subprocess.Popen(["sleep", "60"]) if CASE.weak else contextlib.nullcontext() as other:
        os.kill(other.pid if other else CASE.pid, number)
        if other:
            other.kill()
    return "sent"


def debugged(*command):
    found = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    words = found.stdout + found.stderr
    if "not permitted" in words or "ptrace:" in words or "Could not attach" in words:
        raise NoError(words.strip().splitlines()[0])
    return words[-100:]


def proc():
    """Return attempts by the files of /proc."""
    here = f"/proc/{CASE.pid}"
    for name in READABLE:
        yield f"read /proc/PID/{name}", partial(read, f"{here}/{name}")
        yield f"read /proc/PID/task/PID/{name}", partial(read, f"{here}/task/{CASE.pid}/{name}")
    for name in ("fd", "fdinfo", "map_files", "cwd", "root"):
        yield f"list /proc/PID/{name}", partial(os.listdir, f"{here}/{name}")
    for name in ("exe", "cwd", "root", "ns/mnt", "fd/0"):
        yield f"where /proc/PID/{name} leads", partial(os.readlink, f"{here}/{name}")
    yield "open what it has open", lambda: [opened(f"{here}/fd/{one}", "rb") for one in range(2)]
    yield "search /proc/PID/mem", memory
    writable = {"/proc/PID/mem": ("mem", os.O_RDWR), "its /proc/PID/clear_refs": ("clear_refs", os.O_WRONLY)}
    writable |= {f"its {name}": (name, os.O_RDWR) for name in ("oom_score_adj", "coredump_filter")}
    for name, (file, flags) in writable.items():
        yield (
            f"write to {name}",
            lambda file=file, flags=flags: os.close(os.open(f"{here}/{file}", flags)) or "opened",
        )


def calls():
    """Return attempts by system calls, signals and debuggers."""
    for call in ("process_vm_readv", "process_vm_writev"):
        yield call, partial(across, call)
    for name, request in (("attach", 16), ("seize", 0x4206)):
        yield f"ptrace {name}", partial(traced, request)
    for number in range(6):
        yield (
            f"pidfd_getfd {number}",
            lambda number=number: system_call(438, os.pidfd_open(CASE.pid), number, 0),
        )
    yield "prlimit", limited
    yield "core dump", dumped
    yield "setpriority", lambda: os.setpriority(os.PRIO_PROCESS, CASE.pid, 19) or "set"
    yield "sched_setaffinity", lambda: os.sched_setaffinity(CASE.pid, os.sched_getaffinity(0)) or "set"
    yield "kcmp", lambda: system_call(312, os.getpid(), CASE.pid, 0, 0, 0)
    yield "move_pages", lambda: system_call(279, CASE.pid, 0, 0, 0, 0, 0)
    for name in SIGNALS:
        yield f"signal SIG{name}", partial(signalled, getattr(signal, f"SIG{name}"))
    for tool, *more in (
        ("gdb", "-batch", "-p", str(CASE.pid), "-ex", "info proc"),
        ("gcore", "-o", own("core"), str(CASE.pid)),
    ):
        if shutil.which(tool):
            yield tool, partial(debugged, tool, *more)


def try_process():
    report("process", proc())
    report("process", calls())
