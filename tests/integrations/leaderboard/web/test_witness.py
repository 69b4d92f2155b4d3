"""The server as the witness of a ledger on another machine."""

import functools
import shutil
import socket
import sqlite3

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, refused
from cases import refuses
from made_guards import made_guard
from reusable_holdout_leaderboard.competition import witnessing
from reusable_holdout_leaderboard.store.records import AccessError

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import RolledBackError
from reusable_holdout.witness import Head

LABELS = np.random.default_rng(0).integers(0, 2, 2_000)
PLAN = {"queries": 50, "tolerance": 0.1, "estimate": 0.9}


@pytest.fixture
def site(serve):
    return serve()


@pytest.fixture
def address(site):
    assert make(site, "my-guard").status_code == 200
    return f"{site.url}/api/v1/witness/my-guard"


def make(site, name, client=None):
    return (client or site.admin).post("/admin/witness", json={"name": name})


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
    with made_guard(None, LABELS, ledger=path, witness=address, **PLAN) as guard:
        guard.evaluate(LABELS, prior=1.0)
        source, target = sqlite3.connect(path), sqlite3.connect(copy)
        source.backup(target)
        source.close()
        target.close()
        guard.evaluate(1 - LABELS, prior=0.0)
    assert verify(path).sound
    assert verify(path).witnessed
    with ReusableHoldout.open(path, None, LABELS) as guard:
        assert guard.queries_asked == 2
    shutil.copy(copy, path)
    refuses(RolledBackError, "an older copy was restored", ReusableHoldout.open, path, None, LABELS)
    assert not verify(path).sound


def test_a_head_gives_way_only_to_one_that_knew_of_it(address):
    assert get(address).json() == {"head": ""}
    assert put(address, head(1)).json() == {"head": head(1)}
    assert put(address, head(2), after=head(1)).json() == {"head": head(2)}
    assert put(address, head(2, "b"), after=head(1)).json() == {"head": head(2)}
    assert get(address).json() == {"head": head(2)}


def test_a_stranger_leaves_no_name_behind(site, folder):
    told = [put(f"{site.url}/api/v1/witness/squat-{number}", head(1)) for number in range(3)]
    for one in told:
        assert "board witness squat-" in refused(one, 401, "unauthorized")["message"]
    for client in (site.public, site.team):
        assert make(site, "squat", client).status_code == 401
    assert not (folder / "witness").exists()


def test_a_name_is_made_once_and_is_a_plain_word(site, address):
    assert make(site, "my-guard").json()["error"]["message"].startswith("there is a witness 'my-guard'")
    put(address, head(1))
    for name in ("my-guard", "A", "-a", "a" * 65, "a.b", "../x"):
        assert make(site, name).status_code == 422
        if name != "my-guard":
            assert put(f"{site.url}/api/v1/witness/{name}", head(1)).status_code in {404, 422}


def test_a_token_is_asked_for_before_the_body_arrives(site, address):
    request = b"PUT /api/v1/witness/my-guard HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n"
    put(address, head(1))
    for more in (b"", b"Content-Type: application/json\r\n", b"Authorization: Bearer another\r\n"):
        with socket.create_connection(("127.0.0.1", site.port), timeout=PATIENCE_SECONDS) as connection:
            connection.sendall(request + more + b"\r\n")
            assert connection.recv(100).split()[1] == b"401"


def test_strangers_are_limited_by_address_and_in_total_and_the_owner_is_not(serve):
    site = serve(settings={"newcomers_per_minute": 2, "trusted_proxies": ("127.0.0.1",)})
    make(site, "my-guard")
    address = f"{site.url}/api/v1/witness/my-guard"

    def stranger(number):
        headers = {"Authorization": "Bearer x", "X-Forwarded-For": f"192.0.2.{number}"}
        found = httpx.put(f"{address}-not", json={"head": head(1)}, headers=headers, timeout=PATIENCE_SECONDS)
        return found.status_code

    assert put(address, head(1)).status_code == 200
    assert [stranger(1) for _ in range(3)] == [401, 401, 429]
    assert {stranger(number) for number in range(2, 80)} == {401, 429}  # twenty a minute in all
    for number in range(2, 10):
        assert put(address, head(number), after=head(number - 1)).status_code == 200


def test_a_name_belongs_to_the_token_that_came_first(address):
    without = httpx.put(address, json={"head": head(1)}, timeout=PATIENCE_SECONDS)
    assert without.status_code == 401
    assert put(address, head(1)).status_code == 200
    assert put(address, head(2), after=head(1), token="another").status_code == 401
    assert get(address).json() == {"head": head(1)}


def test_of_two_that_come_first_at_once_one_owns_the_name(tmp_path, monkeypatch):
    witnessing.make_name(tmp_path, "guard")
    first, second = (Head.parse(head(number).encode()) for number in (1, 2))
    write, told = witnessing.write_private, []

    def late(*arguments):
        if not told:
            told.append("other")
            witnessing.advance_head(tmp_path, "guard", "other", first, None)
        write(*arguments)

    monkeypatch.setattr(witnessing, "write_private", late)
    refuses(AccessError, "another ledger", witnessing.advance_head, tmp_path, "guard", "one", first, None)
    assert witnessing.advance_head(tmp_path, "guard", "other", second, first) == second


def test_not_even_its_owner_can_take_a_head_back(address):
    put(address, head(2))
    for older in (head(1), head(2, "b")):
        assert put(address, older, after=head(2)).json() == {"head": head(2)}


@pytest.mark.parametrize("words", ["", "nonsense", head(1)[:-2] + "z\n", head(1) * 2])
def test_text_that_is_no_head_is_refused(address, words):
    assert put(address, words).status_code == 422
    assert get(address).json() == {"head": ""}
