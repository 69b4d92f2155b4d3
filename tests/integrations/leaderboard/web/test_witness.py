"""The server as a witness of a ledger that lies elsewhere."""

import contextlib
import functools
import shutil
import socket
import sqlite3

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web import witnesses
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.wire import HeadBody
from servers import unanswered_port

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import LedgerError, RolledBackError
from reusable_holdout.witness import Head

LABELS = np.random.default_rng(0).integers(0, 2, 2_000)
PLAN = {"queries": 50, "tolerance": 0.1, "estimate": 0.9}


ADMIN = "rh_administrator"


@pytest.fixture
def serve(make_competition, folder, key_file):
    with contextlib.ExitStack() as running:

        def start(**settings):
            make_competition()
            given = {"folder": folder, "key_file": key_file, "answer_seconds": 0.0}
            given |= {"admin_digest": digest_of(ADMIN).hex()}
            return running.enter_context(served(Settings(**(given | settings))))

        yield start


@pytest.fixture
def server(serve):
    return serve()


@pytest.fixture
def address(server):
    assert make(server, "my-guard").status_code == 201
    return f"{server.url}/api/v1/witness/my-guard"


def make(server, name, token=ADMIN):
    """Return the server's response to a request that makes a name."""
    headers = {"Authorization": f"Bearer {token}"}
    url = f"{server.url}/api/v1/admin/witness/{name}"
    return httpx.post(url, headers=headers, timeout=PATIENCE_SECONDS)


def head(query, letter="a"):
    return Head(1, query, letter.encode() * 32).record().decode()


def put(address, head, after="", token="one"):
    return httpx.put(
        address,
        json={"head": head, "after": after},
        headers={"Authorization": f"Bearer {token}"},
        timeout=PATIENCE_SECONDS,
    )


get = functools.partial(httpx.get, timeout=PATIENCE_SECONDS)


def test_a_restored_ledger_is_refused(address, tmp_path):
    path, copy = tmp_path / "guard.db", tmp_path / "copy.db"
    with ReusableHoldout(None, LABELS, ledger=path, witness=address, **PLAN) as guard:
        guard.evaluate_predictions(LABELS, prior=1.0)
        source, target = sqlite3.connect(path), sqlite3.connect(copy)
        source.backup(target)
        source.close()
        target.close()
        guard.evaluate_predictions(1 - LABELS, prior=0.0)
    assert verify(path).sound
    assert verify(path).witnessed
    with ReusableHoldout.open(path, None, LABELS) as guard:
        assert guard.queries_asked == 2
    shutil.copy(copy, path)
    with pytest.raises(RolledBackError, match="an older copy was restored"):
        ReusableHoldout.open(path, None, LABELS)
    assert not verify(path).sound


def test_a_head_gives_way_to_one_that_knew_of_it(address):
    assert get(address).json() == {"head": ""}
    assert put(address, head(1)).json() == {"head": head(1)}
    assert put(address, head(2), after=head(1)).json() == {"head": head(2)}
    assert put(address, head(2, "b"), after=head(1)).json() == {"head": head(2)}
    assert get(address).json() == {"head": head(2)}


def test_a_stranger_leaves_no_name_behind(server, folder):
    told = [put(f"{server.url}/api/v1/witness/squat-{number}", head(1)) for number in range(3)]
    assert {(one.status_code, one.json()["error"]["code"]) for one in told} == {(401, "witness")}
    assert "board witness squat-0" in told[0].json()["error"]["message"]
    for token in ("x", "rh_x"):
        assert make(server, "squat", token).status_code == 401
    assert not (folder / "witness").exists()


def test_a_name_is_made_once_and_is_a_plain_word(server, address):
    assert make(server, "my-guard").json()["error"]["message"].startswith("there is a witness 'my-guard'")
    put(address, head(1))
    for name in ("my-guard", "A", "-a", "a" * 65, "a.b"):
        assert make(server, name).status_code == 422


def test_a_token_is_asked_for_before_the_body_comes(server, address):
    request = b"PUT /api/v1/witness/my-guard HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n"
    for more, status in ((b"", b"401"), (b"Content-Type: application/json\r\n", b"401")):
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(request + more + b"\r\n")
            assert connection.recv(100).split()[1] == status
    put(address, head(1))
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_SECONDS) as connection:
        connection.sendall(request + b"Authorization: Bearer another\r\n\r\n")  # and no owner's
        assert connection.recv(100).split()[1] == b"401"


def test_who_is_no_owner_is_held_up_by_address_and_by_total_and_the_owner_is_not(serve):
    server = serve(newcomers_per_minute=2, trusted_proxies=("127.0.0.1",))
    make(server, "my-guard")
    address = f"{server.url}/api/v1/witness/my-guard"

    def stranger(number):
        headers = {"Authorization": "Bearer x", "X-Forwarded-For": f"192.0.2.{number}"}
        found = httpx.put(f"{address}-not", json={"head": head(1)}, headers=headers, timeout=PATIENCE_SECONDS)
        return found.status_code

    assert put(address, head(1)).status_code == 200
    assert [stranger(1) for _ in range(3)] == [401, 401, 429]
    assert {stranger(number) for number in range(2, 80)} == {401, 429}  # twenty a minute in all
    for number in range(2, 10):
        assert put(address, head(number), after=head(number - 1)).status_code == 200


def test_a_name_belongs_to_who_came_first(address):
    untold = httpx.put(address, json={"head": head(1)}, timeout=PATIENCE_SECONDS)
    assert untold.status_code == 401
    assert put(address, head(1)).status_code == 200
    assert put(address, head(2), after=head(1), token="another").status_code == 401
    assert get(address).json() == {"head": head(1)}


def test_of_two_who_come_first_at_once_one_owns_the_name(tmp_path, monkeypatch):
    witnesses.make_name(tmp_path, "guard")
    body, told = HeadBody(head=head(1)).model_dump_json().encode(), []
    write = witnesses.write_private

    def late(*arguments):
        if not told:
            told.append("other")
            told.append(witnesses._advanced(tmp_path, "guard", "other", body))
        write(*arguments)

    monkeypatch.setattr(witnesses, "write_private", late)
    with pytest.raises(Problem, match="another ledger's"):
        witnesses._advanced(tmp_path, "guard", "one", body)
    later = HeadBody(head=head(2), after=head(1)).model_dump_json().encode()
    assert witnesses._advanced(tmp_path, "guard", "other", later) == {"head": head(2)}


def test_not_even_its_owner_can_take_a_head_back(address):
    put(address, head(2))
    for older in (head(1), head(2, "b")):
        assert put(address, older, after=head(2)).json() == {"head": head(2)}


@pytest.mark.parametrize("words", ["", "nonsense", head(1)[:-2] + "z\n", head(1) * 2])
def test_what_is_no_head_is_refused(address, words):
    assert put(address, words).status_code == 422
    assert get(address).json() == {"head": ""}


@pytest.mark.parametrize("name", ["../x", "A", "-a", "a" * 65, "a.b"])
def test_a_name_is_a_plain_word(server, name):
    assert put(f"{server.url}/api/v1/witness/{name}", head(1)).status_code in {404, 422}


def test_a_name_that_is_anothers_lets_no_guard_be_made(address, tmp_path):
    put(address, head(1))
    with pytest.raises(LedgerError):
        ReusableHoldout(None, LABELS, ledger=tmp_path / "guard.db", witness=address, **PLAN)


def test_without_the_server_nothing_is_asked(tmp_path):
    with unanswered_port() as port, pytest.raises(LedgerError, match="a server that can be reached"):
        address = f"http://127.0.0.1:{port}/api/v1/witness/my-guard"
        ReusableHoldout(None, LABELS, ledger=tmp_path / "guard.db", witness=address, **PLAN)
