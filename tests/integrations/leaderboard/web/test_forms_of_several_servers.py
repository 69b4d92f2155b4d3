"""A page's form as a visitor sends it: to the server that it came from after a restart, and to another one."""

import html
import re

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from reusable_holdout_leaderboard.settings import Settings


@pytest.fixture
def start(folder, key_file):
    """Servers of one folder, as several machines would run them; each has settings of its own."""

    def begin():
        return served(Settings(folder=folder, key_file=key_file, answer_seconds=0.0))

    return begin


def login_form(server):
    """Return address, hidden fields and cookies of the form by which a team logs in."""
    with httpx.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as client:
        page = client.get("/c/demo/login").text
        cookies = dict(client.cookies)
    address, body = re.search(r'<form[^>]*action="([^"]*/login[^"]*)"[^>]*>(.*?)</form>', page, re.S).groups()
    hidden = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', body)
    return html.unescape(address), {name: html.unescape(value) for name, value in hidden}, cookies


def logs_in(server, form, token):
    """Return True if the server takes the form: it sends the visitor on to the board."""
    address, fields, cookies = form
    with httpx.Client(base_url=server.url, cookies=cookies, timeout=PATIENCE_SECONDS) as client:
        return client.post(address, data=fields | {"token": token}).status_code == 303


def test_a_form_is_taken_after_a_restart(make_competition, start):
    token = make_competition().add_team("Blue")
    with start() as before:
        form = login_form(before)
    with start() as after:
        assert logs_in(after, form, token)


def test_a_form_of_one_server_is_taken_by_another_but_not_with_another_visitors_cookie(
    make_competition, start
):
    token = make_competition().add_team("Blue")
    with start() as one, start() as other:
        form = login_form(one)
        assert logs_in(other, form, token)
        assert not logs_in(other, (*form[:2], login_form(other)[2]), token)
