"""Attempts to get an answer that is not recorded, to get budget back, and to keep others out."""

import contextlib
import json
import os
import random
import signal
import socket
import struct
import time
from functools import partial

from intruder.asking import Caller, ask, asked, frame, question, state
from intruder.case import CASE, NoError, ran, report


def recorded(reply, before):
    """Check that each answer is in the history, with its numbers, and is counted."""
    rows = {row["query"]: row for row in ask("history")["rows"]}
    for answer in reply.get("answers", []):
        row = rows.get(answer["query"])
        names = ("value", "charged", "prior", "low", "high")
        if row is None or any(row[name] != answer[name] for name in names):
            return f"not in history: {answer}"
        if not answer["replayed"] and answer["query"] <= before[0]:
            return f"told anew: {answer}"
    after = state()
    new = sum(not one["replayed"] for one in reply.get("answers", []))
    if after[0] < before[0] + new or after[1] > before[1] - new or after[2] > before[2]:
        return f"{before} became {after} by {new} answers"
    said = reply.get("error", {}).get("message", "a replay")
    raise NoError(f"recorded: {before} became {after}" if new else said)


def unrecorded(message):
    before = state()
    return recorded(asked(message), before)


def try_budget():
    rows = [0, 1] * (CASE.rows // 2)
    shifted, zeros = rows[1:] + rows[:1], [0] * CASE.rows
    near = {
        "a new question": question(predictions=[shifted]),
        "the same again": question(predictions=[shifted]),
        "by another name": question(predictions=[shifted], name="other"),
        "another prior": question(predictions=[shifted], prior=0.5000001),
        "as real numbers": question(predictions=[[float(one) for one in shifted]]),
        "true and false": question(predictions=[[bool(one) for one in shifted]]),
        "in another order": question(predictions=[sorted(shifted)]),
        "backwards": question(predictions=[shifted[::-1]]),
        "a row less right": question(predictions=[[1 - shifted[0], *shifted[1:]]]),
        "a batch of the same": {"ask": "many", "predictions": [shifted] * 3, "prior": [0.5] * 3},
        "a batch of one new": {"ask": "many", "predictions": [shifted, zeros], "prior": [0.5, 0.5]},
        "compared with itself": {"ask": "compare", "predictions": [shifted, shifted], "prior": 0.0},
        "compared the other way": {"ask": "compare", "predictions": [zeros, shifted], "prior": 0.0},
        "a prior far off": question(predictions=[[1] * CASE.rows], prior=0.99),
        "a prior far off again": question(predictions=[[1] * CASE.rows], prior=0.99),
    }
    report("budget", {name: partial(unrecorded, frame(one)) for name, one in near.items()})
    moments = {f"kill -9 after {number / 5:.1f} ms": partial(killed, number / 5_000) for number in range(20)}
    report("killed", moments)
    endings = {"close at once": "close", "read nothing": "half", "reset": "reset"}
    report("killed", {f"ask and {name}": partial(left, ending) for name, ending in endings.items()})
    floods = {
        "a thousand connections": (1_000, b""),
        "five hundred halves of a message": (500, frame(question())[:30]),
        "a hundred long messages": (100, struct.pack(">II", 900_000, 0) + b"x" * 10_000),
        "replies that nobody reads": (60, frame({"ask": "history"}) * 50),
    }
    report("flood", {name: partial(flooded, *flood) for name, flood in floods.items()})
    clocks = {
        "set the clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()) or "set",
        "date -s": lambda: ran("date", "-s", "@1"),
        "TZ": lambda: in_zone(question(predictions=[[0, 0, 1, 1] * (CASE.rows // 4)])),
    }
    report("clock", clocks)


def in_zone(one):
    os.environ["TZ"] = "Pacific/Kiritimati"
    time.tzset()
    return unrecorded(frame(one))


def random_question(prior=0.5):
    return frame(question(predictions=[[random.getrandbits(1) for _ in range(CASE.rows)]], prior=prior))


def killed(seconds):
    """Kill a child that asks; the answers that it got must be recorded."""
    before = state()
    ours, theirs = os.pipe()
    message = random_question()
    child = os.fork()
    if not child:
        with contextlib.suppress(BaseException), Caller() as caller:
            caller.send(message)
            os.write(theirs, b"?")
            os.write(theirs, json.dumps(caller.reply()[0]).encode())
        os._exit(0)
    os.close(theirs)
    os.read(ours, 1)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    with open(ours, "rb") as pipe:
        text = pipe.read()
    reply = json.loads(text) if text else {}
    again = asked(message)  # whether it was answered or not, it is one question
    if "answers" in again and state()[0] > before[0] + 1:
        return "one question was answered twice"
    same = {"replayed": True, "charges_left": 0}
    if reply and reply["answers"][0] | same != again["answers"][0] | same:
        return f"two answers: {reply} and {again}"
    return recorded(reply or again, before)


def left(ending):
    before, message = state(), random_question(0.9)
    with Caller() as caller:
        if ending == "reset":
            caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.send(message)
        if ending == "half":
            caller.socket.shutdown(socket.SHUT_RD)
    time.sleep(0.2)
    after, again = state(), asked(message)
    if "answers" in again and after[0] > before[0] and not again["answers"][0]["replayed"]:
        return "answered, and not recorded"
    return recorded(again, before)


def patiently(act):
    """Try for some seconds, as clients do, because the kernel's queue of a socket is short."""
    deadline = time.monotonic() + 5
    while True:
        try:
            return act()
        except (OSError, NoError) as error:
            if time.monotonic() > deadline:
                raise OSError(str(error)) from None
            time.sleep(0.05)


def flooded(count, start):
    """Check that others are still answered; the attempt got in if they are not."""
    opened = []
    patiently(state)  # those of the flood before are gone
    try:
        for _ in range(count):
            one = socket.socket(socket.AF_UNIX)
            one.settimeout(0.05)
            with contextlib.suppress(OSError):
                one.connect(CASE.socket)
                one.sendall(start)
            opened.append(one)
        began = time.monotonic()
        found = patiently(state)
    except OSError as error:
        return f"nobody is answered: {error}"
    finally:
        for one in opened:
            one.close()
    raise NoError(f"answered in {time.monotonic() - began:.2f} s: {found}")
