"""The OpenAPI description, and what a fuzzer does with it: no answer is a failure of the server."""

import json
import warnings

import httpx
import pytest
from board_servers import PATIENCE_SECONDS, served
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from reusable_holdout_leaderboard.competition.teams import digest_of
from reusable_holdout_leaderboard.settings import Settings

ADMIN = "rh_administrator"
LONG = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")


@pytest.fixture
def api(make_competition, folder, key_file):
    """A served competition, and a team's token."""
    competition = make_competition()
    given = Settings(
        folder=folder,
        key_file=key_file,
        admin_digest=digest_of(ADMIN).hex(),
        answer_seconds=0.0,
        requests_per_minute=0,
        submissions_per_minute=0,
    )
    with served(given) as server:
        yield server, competition.add_team("Blue")


def test_every_route_is_described_with_its_refusals_in_the_one_shape(api):
    description = httpx.get(f"{api[0].url}/api/v1/openapi.json", timeout=PATIENCE_SECONDS).json()
    routes = [(path, method, one) for path, of in description["paths"].items() for method, one in of.items()]

    assert len(routes) == 2 * 35 + 3  # of a witness, for the whole server
    for path, method, one in routes:
        assert path.startswith("/api/v1/")
        assert one["summary"]
        assert one["description"]
        refusals = {status for status in one["responses"] if not status.startswith("2")}
        assert refusals >= {"400", "404", "422", "429"}
        for status in refusals:
            schema = one["responses"][status]["content"]["application/json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/ErrorAnswer"}
        team_or_admin = "/me" in path or "/admin/" in path or method in {"post", "put"}
        assert ("401" in refusals) == team_or_admin


def test_nothing_described_names_a_label_or_a_file_of_the_server(api, folder):
    server, _ = api
    text = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=PATIENCE_SECONDS).text

    assert str(folder) not in text
    assert "labels.csv" not in text


@LONG
def test_a_fuzzer_finds_no_failure_and_no_answer_that_is_not_described(api):
    """Driven by schemathesis: every route, with a team's token and with the administrator's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schemathesis = pytest.importorskip("schemathesis")
    server, token = api
    described = httpx.get(f"{server.url}/api/v1/openapi.json", timeout=PATIENCE_SECONDS).json()
    seen = set()
    for given_token in (token, ADMIN):
        schema = schemathesis.openapi.from_dict(described)
        for found in schema.get_all_operations():
            operation = found.ok()
            if "{slug}" in operation.path:
                continue
            _drive(server, operation, given_token, seen)

    assert {status // 100 for status in seen} == {2, 4}


def _drive(server, operation, token, seen):
    headers = {"Authorization": f"Bearer {token}"}
    expected = {int(status) for status in operation.definition.raw["responses"]}

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def drive(case):
        answer = case.call(base_url=server.url, headers=headers)
        assert answer.status_code in expected, (operation.label, answer.status_code, answer.text[:300])
        seen.add(answer.status_code)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}

    drive()


PATHS = (
    "submissions",
    "evaluate",
    "admin/teams",
    "admin/freeze",
    "admin/rotate",
    "admin/teams/x/token",
    "board",
)
KINDS = (
    "application/json",
    "multipart/form-data; boundary=x",
    "multipart/form-data",
    "text/csv",
    "",
    "\x01;;=",
)
PIECES = (
    b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n',
    b'--x\r\nContent-Disposition: form-data; name="claimed"\r\n\r\n',
    b"\r\n--x--\r\n",
    b"id,prediction\n",
    b"r0,1\n",
    b'{"predictions": [',
    b"1,",
    b"]}",
    b'{"name": "x"}',
    b'{"on": 1}',
    b"\x00\xff",
    b"PAR1",
)


# Starlette leaves the file of a form that ends within it to the garbage collector
@pytest.mark.filterwarnings("ignore:Unclosed file <tempfile.SpooledTemporaryFile:ResourceWarning")
def test_no_bytes_of_any_kind_make_the_server_fail(api):
    server, token = api
    with httpx.Client(base_url=f"{server.url}/api/v1", timeout=PATIENCE_SECONDS) as client:

        @settings(max_examples=150, deadline=None, derandomize=True)
        @given(
            path=st.sampled_from(PATHS),
            kind=st.sampled_from(KINDS),
            body=st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=8).map(b"".join),
            admin=st.booleans(),
            query=st.text(max_size=10),
        )
        def drive(path, kind, body, admin, query):
            headers = {
                b"Authorization": f"Bearer {ADMIN if admin else token}".encode(),
                b"Content-Type": kind.encode().strip(b"\x01"),
            }
            params = {"after": query, "limit": query} if query else {}
            answer = client.post(f"/{path}", content=body, headers=headers, params=params)
            assert answer.status_code < 500
            if answer.status_code >= 400:
                assert set(json.loads(answer.content)) == {"error"}

        drive()
