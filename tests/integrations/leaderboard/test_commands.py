"""The command line: starts of servers, and the actions of organisers in a folder and over HTTP."""

import argparse
import contextlib
import json
import re
import shlex
import signal
import subprocess
import sys
import time

import httpx
import pytest
from board_servers import ADMIN, PATIENCE_SECONDS
from cases import refuses
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.actions import ACTIONS
from reusable_holdout_leaderboard.command import add_board
from reusable_holdout_leaderboard.command.options import database_of
from reusable_holdout_leaderboard.competition.base import digest_of
from servers import free_port

from reusable_holdout.errors import HoldoutError, InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

RULES = "--queries 50 --prior-error 0.05 --vacuous"


def parsed(line):
    parser = argparse.ArgumentParser()
    add_board(parser.add_subparsers(required=True))
    return parser.parse_args(shlex.split(f"board {line}"))


@pytest.fixture
def run(capsys):
    """Run a command line in this process; return its text, or its JSON."""

    def main(line):
        options = parsed(line)
        assert options.command(options) == 0
        text = capsys.readouterr().out
        return text if line.startswith("serve") else json.loads(text)

    return main


@pytest.fixture
def start(run, monkeypatch, folder, labels_file):
    """Run a start of a server without serving; return its text, settings and options."""
    found = []
    monkeypatch.setattr(
        "reusable_holdout_leaderboard.command.board.serve",
        lambda settings, **options: found.append((settings, options)),
    )

    def begin(more="", *, make=False):
        made = f"--labels {labels_file} {RULES}" if make else ""
        text = run(f"serve --folder {folder} {made} {more}")
        return text, *found[-1]

    return begin


# ---- starts


def test_the_first_start_makes_a_competition_and_the_next_resumes_it(start, folder, tmp_path):
    text, first, _ = start("--title T", make=True)
    _, settings, options = start("--workers 2 --port 9000 --answer-seconds 0.5")
    assert "T: accuracy, 600 rows" in text
    assert "witness      none: nobody would notice an older copy of the folder" in text
    assert first.folder == settings.folder == folder
    assert (settings.slug, settings.answer_seconds, first.answer_seconds) == ("board", 0.5, 0.05)
    assert options == {"host": "127.0.0.1", "port": 9000, "workers": 2, "root_path": ""}
    token = (folder / "admin.token").read_text().strip()
    assert (folder / "admin.token").stat().st_mode & 0o777 == 0o600
    assert digest_of(token).hex() == first.admin_digest == settings.admin_digest
    assert token not in text
    assert folder.stat().st_mode & 0o777 == 0o700
    with Competition.open(folder) as competition:
        assert competition.rules.queries == 50
    assert f"witness      {tmp_path}/heads" in start(f"--witness {tmp_path}/heads")[0]


def test_a_competition_is_resumed_only_under_its_own_rules(start, run, folder):
    start(make=True)
    start("--queries 50")
    with pytest.raises(InputError, match=r"other queries, estimate; leave these out.*depend on them"):
        start("--queries 60 --estimate 0.9")
    with pytest.raises(InputError, match=r"submissions_per_day; .* 'reusable-holdout board change'"):
        start("--submissions-per-day 3")
    place = f"--folder {folder}"
    changes = run(f"change {place} --submissions-per-day 3 --closes 2030-01-01T00:00+00:00")
    assert [one["detail"]["rule"] for one in changes] == ["submissions_per_day", "closes_at"]
    run(f"change {place} --submissions-per-day none --closes none --title Another")
    refuses(InputError, "at least one rule", run, f"change {place}")
    start("--title Another")
    with Competition.open(folder) as competition:
        assert (competition.rules.submissions_per_day, competition.rules.closes_at) == (None, None)


def test_all_rules_can_be_named(start, folder, tmp_path):
    labels = tmp_path / "targets.csv"
    labels.write_text("row,y\n" + "".join(f"{n},{n % 7}\n" for n in range(500)))
    (tmp_path / "about.txt").write_text("About.")
    (tmp_path / "rules.json").write_text(json.dumps({"submissions_per_team": 9, "queries": 7}))
    start(
        f"--slug mine --labels {labels} --id row --metric mae --metric-parameter lower=0 --metric-parameter upper=6 "
        f"--rules {tmp_path}/rules.json --queries 20 --vacuous --blind --description {tmp_path}/about.txt "
        "--closes 2030-01-01T00:00+00:00 --submissions-per-day 3 --sign-up code"
    )
    with Competition.open(folder, "mine") as competition:
        rules = competition.rules
    assert (rules.metric, dict(rules.metric_parameters)) == ("mae", {"lower": 0.0, "upper": 6.0})
    assert (rules.queries, rules.submissions_per_team, rules.submissions_per_day) == (20, 9, 3)
    assert (rules.blind, rules.vacuous, rules.sign_up) == (True, True, "code")
    assert (rules.description, rules.id_column, rules.closes_at.year) == ("About.", "row", 2030)


def test_labels_without_ids_make_a_competition_of_rows_in_order(start, folder, tmp_path):
    labels = tmp_path / "bare.csv"
    labels.write_text("label\n" + "0\n1\n" * 300)
    start(f"--labels {labels} {RULES}")
    with Competition.open(folder) as competition:
        assert competition.expected.header() == ["prediction"]


def test_a_folder_is_backed_up_and_restored(start, run, folder, tmp_path):
    _, first, _ = start(make=True)
    made = run(f"backup {tmp_path}/backup --folder {folder}")
    run(f"restore {tmp_path}/backup --folder {tmp_path}/again")
    assert made["competitions"] == {"board": {"answers": 0}}
    _, again, _ = start(f"--folder {tmp_path}/again")
    assert again.admin_digest == first.admin_digest
    with pytest.raises(InputError, match="pg_dump"):
        run(f"backup {tmp_path}/other --folder {folder} --database postgresql://me@host/name")


def test_a_server_behind_a_proxy_knows_its_path_and_the_proxies(start):
    proxies = "--proxy-headers 127.0.0.1 --proxy-headers 10.0.0.0/8 --root-path /board --head-seconds 5"
    _, settings, options = start(f"{proxies} --secure-cookies", make=True)
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert (settings.head_seconds, settings.secure_cookies, options["root_path"]) == (5, True, "/board")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve", "make it with --labels"),
        ("serve --labels nothing.csv", "a file with the labels at nothing.csv; there is none"),
        ("serve --rules {0}/nothing.json", "rules must be a file that can be read; .*there is no such file"),
        ("serve --root-path board", "must be a path such as /board"),
        ("serve --database postgresql+psycopg://me:word@host/name", "no password"),
        ("serve --database sqlite:///x.db", "postgresql"),
        ("serve --database postgresql://host/x --database-file {0}/x", "not by both"),
        ("serve --database-file {0}/nothing", "there is none"),
        ("status", "a competition must be made first"),
        ("status --url http://127.0.0.1:1", "there is none"),
    ],
)
def test_an_impossible_command_is_explained(run, folder, line, words):
    refused = refuses(HoldoutError, words, run, f"{line.format(folder)} --folder {folder}")
    assert "word@" not in str(refused)


@pytest.mark.parametrize("line", ["serve --metric-parameter lower", "change --most-teams x", "nothing"])
def test_a_wrong_command_line_exits(line):
    refuses(SystemExit, "", parsed, line)


def test_an_unknown_competition_is_refused_with_the_known_ones(start, run, folder):
    start(make=True)
    with pytest.raises(InputError, match="must be one of board; got 'blue'; name one of them"):
        run(f"add-team Blue --folder {folder} --slug blue")


def test_a_database_comes_from_the_environment_or_a_private_file(tmp_path, monkeypatch):
    url, stored = "postgresql+psycopg://me:word@host/name", tmp_path / "database"
    stored.write_text(f"{url}\n")
    stored.chmod(0o600)
    for line, found in (
        ("", None),
        (f"--database-file {stored}", url),
        ("--database postgresql+psycopg://me@host/name", "postgresql+psycopg://me@host/name"),
    ):
        assert database_of(parsed(f"serve {line}")) == found
    monkeypatch.setenv("REUSABLE_HOLDOUT_DATABASE", url)
    assert database_of(parsed("serve")) == url


# ---- actions of organisers


@pytest.fixture(params=[False, True], ids=["folder", "HTTP"])
def organise(request, run, serve, folder, tmp_path):
    """Make a competition; return it and a function that runs an action, in the folder or over HTTP."""

    def start(**rules):
        site, token = serve(**rules), tmp_path / "admin.token"
        token.write_text(f"{ADMIN}\n")
        token.chmod(0o600)
        place = f"--folder {folder} --key {tmp_path}/fixed.key"
        if request.param:
            place = f"--url {site.url} --slug demo --token-file {token}"
        return site, lambda line: run(f"{line} {place}")

    return start


def test_every_action_is_run_by_a_command(
    organise, tmp_path, fresh_labels_file, next_labels_file, send_whole
):
    site, act = organise(fresh=fresh_labels_file, blind=True, sign_up="code")
    competition, done = site.competition, set()

    def run(line):
        done.add(line.split()[0])
        return act(line)

    token = run("add-team Blue")["token"]
    blue = competition.authenticate(token)
    renewed = run("renew-token Blue")["token"]
    assert competition.authenticate(token) is None
    assert competition.authenticate(renewed) == blue
    code = run("invite")["code"]
    for name in ("Red", "Green"):
        competition.sign_up(name, code)
    send_whole(competition, "Blue", 0.9)
    assert run("rename-team Blue Azure")[0]["name"] == "Azure"
    assert run("disqualify Green")[2]["disqualified"] is True
    assert run("disqualify Green --off")[2]["disqualified"] is False
    (tmp_path / "train.csv").write_text("a\n1\n")
    assert run(f"attach {tmp_path}/train.csv") == {"name": "train.csv", "bytes": 4}
    assert run("detach train.csv") == []
    (changed,) = run("change --sign-up closed")
    assert changed["detail"] == {"rule": "sign_up", "from": "code", "to": "closed"}
    for named, stored in (("f1", ["f1"]), ("none", [])):
        assert run(f"change --also {named}")[0]["detail"]["to"] == stored
    assert run("unblind")["blind"] is False
    assert run("freeze")["frozen"] is True
    assert run("freeze --off")["frozen"] is False
    run("freeze")
    assert run("final")[0]["team"] == "Azure"
    status = run("status")
    assert (status["status"]["final"], status["board"][0]["team"]) == (True, "Azure")
    with pytest.raises(HoldoutError, match="has changed meanwhile"):  # after the final
        run(f"rotate {next_labels_file} --early")
    refuses(InputError, "there is none", run, "renew-token Nobody")
    assert done == set(ACTIONS)


def test_a_label_set_is_rotated_by_a_command(organise, next_labels_file):
    _, act = organise()
    refuses(InputError, "early", act, f"rotate {next_labels_file}")
    status = act(f"rotate {next_labels_file} --early --queries 9")
    assert (status["epoch"], status["queries_left"]) == (2, 9)


# ---- a real server


def test_two_commands_make_a_board_with_a_submission(tmp_path, run):
    folder, port = tmp_path / "data", free_port()
    command = f"board serve --example --folder {folder} --port {port} --workers 2"
    script = (
        "import argparse, sys; from reusable_holdout_leaderboard.command import add_board; "
        "p = argparse.ArgumentParser(); add_board(p.add_subparsers(required=True)); "
        "o = p.parse_args(); sys.exit(o.command(o))"
    )
    output = (tmp_path / "out").open("w")
    process = subprocess.Popen(
        [sys.executable, "-c", script, *shlex.split(command)], stdout=output, stderr=subprocess.DEVNULL
    )
    url, made = f"http://127.0.0.1:{port}", folder / "example"
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/api/v1/status", timeout=PATIENCE_SECONDS).is_success:
                    break
            time.sleep(0.1)
        told = (tmp_path / "out").read_text()
        (line,) = re.findall(r"^submit +(curl .*)$", told, re.MULTILINE)
        sent = json.loads(subprocess.run(["sh", "-c", line], capture_output=True, check=True).stdout)
        status = run(f"status --url {url} --token-file {folder}/admin.token")
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
        output.close()
    assert (sent["state"], sent["claimed"]) == ("scored", 0.75)
    assert status["board"][0]["value"] == sent["value"]
    assert [one["name"] for one in status["teams"]] == ["First"]
    assert not list(folder.glob("server-*"))
    assert not (made / "labels.csv").exists()
    for path in folder.rglob("*"):
        if path.suffix in {".token", ".key", ".parquet"}:
            assert path.stat().st_mode & 0o777 == 0o600
