"""Cost of anonymous uploads to a leaderboard: memory and disk while 90 connections send the largest form at once.

The real server, one worker process, on loopback, over HTTP, with its own limits: requests of up to 16 MiB. Each
connection sends a form with a file to an address of the pages, all but its last bytes, and waits until the others have
done so. Some have the cookie and the key of a form, as every visitor can, and some have neither. Memory is that of the
server and its processes; disk is what they have in files that are deleted already, where spooled uploads lie.

    python examples/benchmarks/uploads.py            # ten seconds

The exit status is 1 if memory and disk together grow by more than 50 MiB.
"""

from __future__ import annotations

import contextlib
import re
import socket
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import psutil
from board_door import MEGABYTE, PATIENCE_SECONDS, make_board, memory

sys.path.append(str(Path(__file__).parent.parent / "leaderboard"))
from collections.abc import Iterator

from served import Served, served

CONNECTIONS, LARGEST, MOST = 90, 16 * MEGABYTE, 50
PATHS = ("submit", "login", "join", "organise/attach", "organise/login", "organise/change")


def main() -> int:
    """Measure and print."""
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as name:
        folder = Path(name) / "door"
        make_board(folder)
        worst = 0
        print(
            "| forms | connections | answered before the end | memory, MiB | disk, MiB |\n|---|---|---|---|---|"
        )
        for known in (False, True):
            with served(folder, workers=1, connections_per_address=2 * CONNECTIONS) as server:
                answered, held, spooled = attacked(server, known=known)
            worst = max(worst, held + spooled)
            sent = "with a visitor's key" if known else "without a key"
            print(f"| {sent} | {CONNECTIONS} | {answered} | {held} | {spooled} |")
    return int(worst > MOST)


def attacked(server: Served, *, known: bool) -> tuple[int, int, int]:
    """Return how many were answered before their forms ended, and by how many MiB memory and disk grew at most."""
    root = psutil.Process(server.process.pid)
    cookie, keys = visitor(server)
    before, peak, over = memory(root), [0, 0], threading.Event()

    def watch() -> None:
        while not over.wait(0.01):
            peak[0] = max(peak[0], memory(root) - before)
            peak[1] = max(peak[1], deleted(root))

    watching = threading.Thread(target=watch)
    watching.start()
    together = threading.Barrier(CONNECTIONS)
    with ThreadPoolExecutor(CONNECTIONS) as pool:

        def one(number: int) -> bool:
            path = PATHS[number % len(PATHS)]
            key = keys[path.startswith("organise")]
            form = f"?form={key}\r\nCookie: {cookie}".split("\r\n") if known else ["", "X: y"]
            return upload(server, f"/c/door/{path}{form[0]}", form[1], together)

        answered = sum(pool.map(one, range(CONNECTIONS)))
    over.set()
    watching.join()
    return answered, peak[0] // MEGABYTE, peak[1] // MEGABYTE


def visitor(server: Served) -> tuple[str, list[str]]:
    """Return a visitor's cookie, and the keys of the forms of teams and of organisers."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        pages = [client.get(f"/c/door/{name}").text for name in ("login", "organise")]
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
    return cookie, [re.findall(r"\?form=(\w+)", page)[0] for page in pages]


def upload(server: Served, path: str, header: str, together: threading.Barrier) -> bool:
    """Send a form but its end, as far as it is taken; return True if it was answered before its end."""
    host, port = server.url.removeprefix("http://").split(":")
    head = (
        f"POST {path} HTTP/1.1\r\nHost: x\r\n{header}\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        f"Content-Length: {LARGEST}\r\n\r\n--x\r\n"
        'Content-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
    ).encode()
    with socket.create_connection((host, int(port)), timeout=PATIENCE_SECONDS) as connection:
        with contextlib.suppress(OSError):
            connection.sendall(head)
            for piece in pieces(LARGEST - 4096):
                connection.sendall(piece)
        time.sleep(0.5)  # what has come is read
        with contextlib.suppress(threading.BrokenBarrierError):
            together.wait(PATIENCE_SECONDS)
        connection.settimeout(0.5)
        try:
            return bool(connection.recv(64))
        except TimeoutError:
            return False
        except OSError:
            return True  # it was hung up on


def pieces(size: int) -> Iterator[bytes]:
    """Yield the rows of a file."""
    for start in range(0, size, MEGABYTE):
        yield b"7" * min(MEGABYTE, size - start)


def deleted(root: psutil.Process) -> int:
    """Return the bytes on disk of files that a process and all it started have open and that are deleted."""
    found = 0
    for one in (root, *root.children(recursive=True)):
        for descriptor in Path(f"/proc/{one.pid}/fd").glob("*"):
            with contextlib.suppress(OSError):
                status = descriptor.stat()
                if status.st_nlink == 0:
                    found += status.st_blocks * 512
    return found


if __name__ == "__main__":
    sys.exit(main())
