"""The commands that start servers and run competitions."""

import argparse
import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.command import add_commands
from reusable_holdout_leaderboard.competition.teams import digest_of
from servers import free_port

from reusable_holdout import ReusableHoldout
from reusable_holdout.errors import HoldoutError, InputError, RolledBackError

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")


@pytest.fixture
def run(capsys):
    """The command line, in this process: what it prints."""

    def main(line):
        parser = argparse.ArgumentParser()
        add_commands(parser.add_subparsers(required=True))
        options = parser.parse_args(shlex.split(line))
        assert options.command(options) == 0
        return capsys.readouterr().out

    return main


@pytest.fixture
def started(monkeypatch):
    """Settings of servers that were to be started."""
    found = []
    monkeypatch.setattr(
        "reusable_holdout_leaderboard.web.server.serve",
        lambda settings, **options: found.append((settings, options)),
    )
    return found


def test_the_first_start_makes_a_competition_and_the_next_resumes_it(run, started, folder, labels_file):
    place = f"--folder {folder}"
    text = run(
        f"serve {place} --labels {labels_file} --policy thresholdout --queries 50 --tolerance 0.25 --title T"
    )
    run(f"serve {place} --workers 2 --port 9000 --answer-seconds 0.5")

    (first, _), (settings, options) = started
    assert "T: accuracy, thresholdout, 600 rows" in text
    assert first.folder == settings.folder == folder
    assert settings.slug == "board"
    assert settings.answer_seconds == 0.5
    plain = {"root_path": "", "tls_certificate": None, "tls_key": None}
    assert options == {"host": "127.0.0.1", "port": 9000, "workers": 2, **plain}
    token = (folder / "admin.token").read_text().strip()
    assert (folder / "admin.token").stat().st_mode & 0o777 == 0o600
    assert digest_of(token).hex() == first.admin_digest == settings.admin_digest
    assert token not in text
    assert folder.stat().st_mode & 0o777 == 0o700
    with Competition.open(folder) as competition:
        assert competition.rules.queries == 50


def test_a_competition_is_not_resumed_under_other_rules(run, started, folder, labels_file):
    run(f"serve --folder {folder} --labels {labels_file} --policy ladder --queries 50 --tolerance 0.25")

    run(f"serve --folder {folder} --labels {labels_file} --queries 50")
    with pytest.raises(
        InputError,
        match="made with another policy, queries; leave them out to resume it; what the guard rests",
    ):
        run(f"serve --folder {folder} --queries 60 --policy thresholdout")


def test_rules_are_changed_by_a_command_and_a_start_says_which_command(run, started, folder, labels_file):
    run(f"serve --folder {folder} --labels {labels_file} --policy ladder --queries 50 --tolerance 0.25")
    with pytest.raises(InputError, match=r"submissions_per_day; .* 'reusable-holdout board change'"):
        run(f"serve --folder {folder} --submissions-per-day 3")
    changes = json.loads(
        run(f"board change --folder {folder} --submissions-per-day 3 --closes 2030-01-01T00:00+00:00")
    )
    run(f"board change --folder {folder} --submissions-per-day none --title Another")

    assert [one["detail"]["rule"] for one in changes] == ["submissions_per_day", "closes_at"]
    with pytest.raises(InputError, match="at least one rule"):
        run(f"board change --folder {folder}")
    run(f"serve --folder {folder} --title Another")
    with Competition.open(folder) as competition:
        assert competition.rules.submissions_per_day is None
        assert competition.rules.closes_at.year == 2030


@pytest.mark.parametrize("over_http", [False, True])
def test_teams_and_files_are_run_by_commands(run, organised, folder, tmp_path, over_http):
    competition, admin, _ = organised(sign_up="code")
    token = tmp_path / "admin.token"
    token.write_text("rh_administrator\n")
    token.chmod(0o600)
    url = str(admin.base_url).removesuffix("/api/v1/")
    place = (
        f"--url {url} --token-file {token}" if over_http else f"--folder {folder} --key {tmp_path}/fixed.key"
    )
    code = json.loads(run(f"board invite {place}"))["code"]
    for name in ("Blue", "Red", "Green"):
        competition.sign_up(name, code)
    (tmp_path / "train.csv").write_text("a\n1\n")

    assert json.loads(run(f"board rename-team Blue Azure {place}"))[0]["name"] == "Azure"
    assert [one["name"] for one in json.loads(run(f"board merge Azure Red {place}"))] == ["Azure", "Green"]
    assert json.loads(run(f"board disqualify Green {place}"))[1]["disqualified"] is True
    assert json.loads(run(f"board disqualify Green --off {place}"))[1]["disqualified"] is False
    assert json.loads(run(f"board attach {tmp_path}/train.csv {place}")) == {"name": "train.csv", "bytes": 4}
    assert json.loads(run(f"board detach train.csv {place}")) == []
    (changed,) = json.loads(run(f"board change --sign-up closed {place}"))
    assert changed["detail"] == {"rule": "sign_up", "from": "code", "to": "closed"}


@pytest.mark.parametrize("over_http", [False, True])
def test_a_name_of_a_witness_is_made_by_a_command(run, organised, folder, tmp_path, over_http):
    _, admin, _ = organised()
    token = tmp_path / "admin.token"
    token.write_text("rh_administrator\n")
    token.chmod(0o600)
    url = str(admin.base_url).removesuffix("/api/v1/")
    place = (
        f"--url {url} --token-file {token}" if over_http else f"--folder {folder} --key {tmp_path}/fixed.key"
    )
    assert json.loads(run(f"board witness {place} my-guard")) == {"name": "my-guard"}
    with pytest.raises(HoldoutError, match="there is a witness 'my-guard' already"):
        run(f"board witness {place} my-guard")
    guard = ReusableHoldout(
        None,
        np.arange(500) % 2,
        queries=20,
        tolerance=0.2,
        ledger=tmp_path / "guard.db",
        witness=f"{url}/api/v1/witness/my-guard",
    )
    guard.close()


def test_a_start_with_a_witness_refuses_an_older_copy_of_the_folder_and_says_what_to_do(
    run, started, folder, labels_file, tmp_path, sheet
):
    witness = tmp_path / "elsewhere.heads"
    rules = "--policy thresholdout --queries 50 --tolerance 0.25"
    made = run(f"serve --folder {folder} --labels {labels_file} {rules} --witness {witness}")
    assert f"witness      {witness}" in made
    shutil.copytree(folder, tmp_path / "kept")
    with Competition.open(folder) as competition:
        team = competition.authenticate(competition.add_team("Blue"))
        competition.submit(team.id, sheet(0.9), filename="x.csv", claimed=0.9)
    assert f"witness      {witness}" in run(f"serve --folder {folder}")
    shutil.rmtree(folder)
    shutil.copytree(tmp_path / "kept", folder)
    for more in ("", f" --witness {witness}"):
        with pytest.raises(RolledBackError, match="put the newest copy back"):
            run(f"serve --folder {folder}{more}")
    assert len(started) == 2


def test_a_start_without_a_witness_says_what_goes_unnoticed(run, started, folder, labels_file):
    text = run(
        f"serve --folder {folder} --labels {labels_file} --policy ladder --queries 50 --tolerance 0.25"
    )
    assert "witness      none: an older copy of the folder would pass for this one" in text


def test_a_folder_is_backed_up_and_restored(run, started, folder, labels_file, tmp_path):
    run(
        f"serve --folder {folder} --labels {labels_file} --policy ladder --queries 50 --tolerance 0.25 --title T"
    )
    made = json.loads(run(f"board backup {tmp_path}/backup --folder {folder}"))
    run(f"board restore {tmp_path}/backup --folder {tmp_path}/again")

    assert made["competitions"] == {"board": {"answers": 0}}
    assert (tmp_path / "again" / "admin.token").read_text() == (folder / "admin.token").read_text()
    run(f"serve --folder {tmp_path}/again --title T")
    assert started[-1][0].admin_digest == started[0][0].admin_digest
    with pytest.raises(InputError, match="pg_dump"):
        run(f"board backup {tmp_path}/other --folder {folder} --database postgresql://me@host/name")


def test_other_metrics_of_the_final_are_named_and_changed_by_commands(
    run, started, folder, labels_file, fresh_labels_file
):
    start = f"serve --folder {folder} --labels {labels_file} --policy ladder --queries 50 --tolerance 0.25"
    with pytest.raises(InputError, match="need fresh labels"):
        run(f"{start} --also f1")
    run(f"{start} --fresh-labels {fresh_labels_file} --also f1 --also balanced_accuracy")
    with Competition.open(folder) as competition:
        assert competition.rules.also == ("f1", "balanced_accuracy")
    run(f"serve --folder {folder} --also f1 --also balanced_accuracy")
    with pytest.raises(InputError, match="another also"):
        run(f"serve --folder {folder} --also f1")
    (change,) = json.loads(run(f"board change --folder {folder} --also jaccard"))
    assert change["detail"]["to"] == ["jaccard"]
    (change,) = json.loads(run(f"board change --folder {folder} --also none"))
    assert change["detail"]["to"] == []


def test_all_rules_can_be_named(run, started, folder, tmp_path):
    labels = tmp_path / "targets.csv"
    labels.write_text("row,y\n" + "".join(f"{n},{n % 7}\n" for n in range(500)))
    (tmp_path / "about.txt").write_text("About.")
    (tmp_path / "rules.json").write_text(json.dumps({"submissions_per_team": 9, "queries": 7}))
    run(
        f"serve --folder {folder} --slug mine --labels {labels} --id row --metric mae --metric-parameter lower=0 "
        f"--metric-parameter upper=6 --rules {tmp_path}/rules.json --queries 20 --tolerance 2 --vacuous --blind "
        f"--policy ladder --description {tmp_path}/about.txt --closes 2030-01-01T00:00+00:00 --submissions-per-day 3"
    )

    with Competition.open(folder, "mine") as competition:
        rules = competition.rules
    assert (rules.metric, dict(rules.metric_parameters)) == ("mae", {"lower": 0.0, "upper": 6.0})
    assert (rules.queries, rules.submissions_per_team, rules.submissions_per_day) == (20, 9, 3)
    assert (rules.blind, rules.vacuous, rules.description, rules.id_column, rules.closes_at.year) == (
        True,
        True,
        "About.",
        "row",
        2030,
    )


def test_labels_without_ids_make_a_competition_of_rows_in_order(run, started, folder, tmp_path):
    labels = tmp_path / "labels.csv"
    labels.write_text("label\n" + "0\n1\n" * 300)
    run(f"serve --folder {folder} --labels {labels} --policy ladder --queries 20 --tolerance 0.25")

    with Competition.open(folder) as competition:
        assert competition.expected.header() == ["prediction"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --folder {0}", "make it with --labels"),
        (
            "serve --folder {0} --labels {0}/nothing.csv",
            "a file with the labels at .*nothing.csv; there is none",
        ),
        ("serve --folder {0} --rules {0}/nothing.json", "must be a text file"),
        ("serve --folder {0} --metric-parameter lower", "NAME=NUMBER"),
        ("serve --folder {0} --database postgresql+psycopg://me:word@host/name", "no password"),
        ("serve --folder {0} --database sqlite:///x.db", "postgresql"),
        ("serve --folder {0} --database postgresql://host/x --database-file {0}/x", "not by both"),
        ("serve --folder {0} --database-file {0}/nothing", "there is none"),
        ("board status --folder {0}", "a competition must be made first"),
        ("board submit {0}/x.csv --folder {0}", "--url"),
        ("board status --folder {0} --url http://127.0.0.1:1", "there is none"),
    ],
)
def test_a_command_that_cannot_be_done_says_what_to_do(run, folder, line, words):
    with pytest.raises(HoldoutError, match=words) as refused:
        run(line.format(folder))
    assert "word@" not in str(refused.value)


def test_what_is_not_installed_is_named(run, folder, monkeypatch):
    monkeypatch.setattr("reusable_holdout_leaderboard.command.options._EXTRA", ("json", "no_such_module"))

    for line in (f"serve --folder {folder}", f"board status --folder {folder}"):
        with pytest.raises(InputError, match=r"needs no_such_module, .*reusable-holdout\[leaderboard\]"):
            run(line)


def test_a_database_comes_from_the_environment_or_a_private_file(folder, tmp_path, monkeypatch):
    from reusable_holdout_leaderboard.command.options import database_of

    def given(line):
        parser = argparse.ArgumentParser()
        add_commands(parser.add_subparsers(required=True))
        return database_of(parser.parse_args(shlex.split(f"serve {line}")))

    url = "postgresql+psycopg://me:word@host/name"
    stored = tmp_path / "database"
    stored.write_text(f"{url}\n")
    stored.chmod(0o600)
    assert given("") is None
    assert given(f"--database-file {stored}") == url
    assert given("--database postgresql+psycopg://me@host/name") == "postgresql+psycopg://me@host/name"
    monkeypatch.setenv("REUSABLE_HOLDOUT_DATABASE", url)
    assert given("") == url


def test_a_competition_is_run_from_its_folder(
    run, make_competition, folder, fresh_labels_file, sheet, monkeypatch
):
    competition = make_competition(fresh=fresh_labels_file, blind=True)
    monkeypatch.chdir(folder.parent)
    place, key = f"--folder {folder}", f"--key {folder.parent / 'fixed.key'}"

    token = json.loads(run(f"board add-team Blue {place} {key}"))["token"]
    blue = competition.authenticate(token)
    competition.submit(blue.id, sheet(0.9, rows=900), filename="x.csv")
    renewed = json.loads(run(f"board renew-token Blue {place} {key}"))["token"]

    assert competition.authenticate(token) is None
    assert competition.authenticate(renewed) == blue
    assert json.loads(run(f"board unblind {place} {key}"))["blind"] is False
    assert json.loads(run(f"board freeze {place} {key}"))["frozen"] is True
    assert json.loads(run(f"board freeze --off {place} {key}"))["frozen"] is False
    run(f"board freeze {place} {key}")
    assert json.loads(run(f"board final {place} {key}"))[0]["team"] == "Blue"
    assert json.loads(run(f"board status {place} {key}"))["status"]["final"] is True
    with pytest.raises(InputError, match="there is none"):
        run(f"board renew-token Red {place} {key}")


def test_two_commands_make_a_board_with_a_submission(tmp_path, run):
    folder, port = tmp_path / "data", free_port()
    command = f"serve --example --folder {folder} --port {port} --workers 2"
    script = (
        "import argparse, sys; from reusable_holdout_leaderboard.command.commands import add_commands; "
        "p = argparse.ArgumentParser(); add_commands(p.add_subparsers(required=True)); "
        "o = p.parse_args(); sys.exit(o.command(o))"
    )
    output = (tmp_path / "out").open("w")
    process = subprocess.Popen(
        [sys.executable, "-c", script, *shlex.split(command)], stdout=output, stderr=subprocess.DEVNULL
    )
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{url}/api/v1/status", timeout=PATIENCE_SECONDS).is_success:
                    break
            time.sleep(0.1)
        made = folder / "example"
        sent = json.loads(
            run(f"board submit {made}/first.csv --claimed 0.75 --url {url} --token-file {made}/team.token")
        )
        anew = json.loads(
            run(
                f"board submit {made}/first.csv --claimed 0.7 --anew --url {url} --token-file {made}/team.token"
            )
        )
        admin = f"--url {url} --token-file {folder}/admin.token"
        team = json.loads(run(f"board add-team Second {admin}"))
        status = json.loads(run(f"board status {admin}"))
        renewed = json.loads(run(f"board renew-token Second {admin}"))
        frozen = json.loads(run(f"board freeze {admin}"))
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(PATIENCE_SECONDS)
        output.close()

    assert sent["state"] == anew["state"] == "scored"
    assert (sent["claimed"], anew["claimed"]) == (0.75, 0.7)
    assert not anew["replayed"]
    assert status["board"][0]["value"] == sent["value"]
    assert [one["name"] for one in status["teams"]] == ["First", "Second"]
    assert team["token"].startswith("rh_")
    assert renewed["token"] != team["token"]
    assert frozen["frozen"] is True
    told = (tmp_path / "out").read_text()
    assert f"{url}/api/v1/submissions" in told
    assert not list(folder.glob("server-*"))
    assert not (made / "labels.csv").exists()
    for path in folder.rglob("*"):
        if path.suffix in {".token", ".key", ".parquet"}:
            assert path.stat().st_mode & 0o777 == 0o600


def test_a_server_behind_a_proxy_is_told_where_it_is_shown_and_whom_to_trust(
    run, started, folder, labels_file
):
    run(
        f"serve --folder {folder} --labels {labels_file} --policy thresholdout --queries 50 --tolerance 0.25 "
        "--proxy-headers 127.0.0.1 --proxy-headers 10.0.0.0/8 --root-path /board --head-seconds 5"
    )
    ((settings, options),) = started
    assert settings.trusted_proxies == ("127.0.0.1", "10.0.0.0/8")
    assert settings.head_seconds == 5
    assert options["root_path"] == "/board"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("--root-path board", "must be a path such as /board"),
        ("--tls-key key.pem", "go together"),
        ("--tls-certificate a.pem --tls-key b.pem", "there must be a file a.pem"),
    ],
)
def test_a_place_that_cannot_be_served_at_is_refused_before_anything_is_made(
    run, folder, labels_file, given, words
):
    with pytest.raises(InputError, match=words):
        run(f"serve --folder {folder} --labels {labels_file} {given}")
    assert not folder.exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("serve --labels nothing.csv", "there must be a file with the labels at nothing.csv; there is none"),
        (
            "board add-team Blue",
            r"must be made first; there is none in .*; make one, as with serve --labels, or name",
        ),
    ],
)
def test_what_comes_before_the_first_competition_says_what_to_do(run, folder, line, words):
    with pytest.raises(InputError, match=words):
        run(f"{line} --folder {folder}")


def test_a_competition_that_is_none_of_those_made_is_told_which_there_are(run, started, folder, labels_file):
    run(f"serve --folder {folder} --labels {labels_file} --policy thresholdout --queries 50 --tolerance 0.25")
    with pytest.raises(InputError, match="must be one of board; got 'blue'; name one of them"):
        run(f"board add-team Blue --folder {folder} --slug blue")
