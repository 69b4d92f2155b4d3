"""The OpenAPI description, and fuzzers that use it: the server never fails."""

import json
import warnings

import pytest
from board_servers import ADMIN
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from reusable_holdout_leaderboard.actions import ACTIONS

LONG = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")


@pytest.fixture
def site(serve):
    return serve(settings={"requests_per_minute": 0})


@pytest.fixture
def described(site):
    return site.public.get("/openapi.json").json()


def test_every_route_is_described_with_its_refusals(described):
    routes = [(path, method, one) for path, of in described["paths"].items() for method, one in of.items()]
    assert len(routes) == 2 * (19 + len(ACTIONS))
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


def test_the_description_names_no_label_and_no_file_of_the_server(described, folder):
    text = json.dumps(described)
    assert str(folder) not in text
    assert "labels.csv" not in text


@LONG
def test_a_fuzzer_finds_no_failure_and_no_undescribed_answer(site, described):
    """Call every route by schemathesis, with a team's token and with the administrator's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        schemathesis = pytest.importorskip("schemathesis")
    seen = set()
    for token in (site.token, ADMIN):
        for found in schemathesis.openapi.from_dict(described).get_all_operations():
            operation = found.ok()
            if "{slug}" not in operation.path:
                _drive(site, operation, token, seen)
    assert {status // 100 for status in seen} == {2, 4}


def _drive(site, operation, token, seen):
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
        answer = case.call(base_url=site.url, headers=headers)
        assert answer.status_code in expected, (operation.label, answer.status_code, answer.text[:300])
        seen.add(answer.status_code)
        if answer.status_code >= 400:
            assert set(answer.json()) == {"error"}

    drive()


PATHS = "submissions teams me/picks admin/add-team admin/change admin/freeze admin/rotate admin/attach board"
KINDS = "application/json|multipart/form-data; boundary=x|multipart/form-data|text/csv||\x01;;="
_PART = b"--x\r\nContent-Disposition: form-data; name="
PIECES = (
    *(_PART + b'"file"; filename="a.csv"\r\n\r\n', _PART + b'"claimed"\r\n\r\n', b"\r\n--x--\r\n"),
    *(b"id,prediction\n", b"r0,1\n", b'{"submissions": [', b"1,", b"]}", b'{"team": "x"}', b'{"off": 1}'),
    *(b'{"changes": {"queries": 1}}', b"\x00\xff", b"PAR1"),
)


# Starlette leaves the file of an incomplete form to the garbage collector
@pytest.mark.filterwarnings("ignore:Unclosed file <tempfile.SpooledTemporaryFile:ResourceWarning")
def test_no_bytes_make_the_server_fail(site):
    token, client = site.token, site.public

    @settings(max_examples=150, deadline=None, derandomize=True)
    @given(
        path=st.sampled_from(PATHS.split()),
        kind=st.sampled_from(KINDS.split("|")),
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
