"""The scoring program for other platforms: answers of the guard, refusals that cost nothing, visible halts."""

import json
import os
import subprocess
import sys

import pytest
from cases import refuses
from reusable_holdout_leaderboard import Competition
from reusable_holdout_leaderboard.scoring_program import DATABASE_FILE, LEDGER, TEAM, create, main

from reusable_holdout.errors import InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

RULES = {"slug": "demo", "title": "Demo", "queries": 50, "charges": 2, "prior_error": 0.05, "vacuous": True}
RULES |= {"submissions_per_team": 50}


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    """The platform names a team, and nothing else."""
    for name in (LEDGER, DATABASE_FILE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(TEAM, "Blue")


@pytest.fixture
def reference(tmp_path, labels_file):
    """The organiser's folder with labels and rules."""
    folder = tmp_path / "reference"
    folder.mkdir()
    labels_file.rename(folder / "labels.csv")
    (folder / "rules.json").write_text(json.dumps(RULES))
    return folder


@pytest.fixture
def ledger(tmp_path, reference):
    """A folder with the competition."""
    folder = tmp_path / "board"
    create(reference, ledger=folder).close()
    return folder


@pytest.fixture
def bundle(tmp_path, sheet):
    """Run the scoring program on a bundle; return exit status, scores and the page of details."""
    made = []

    def run(*arguments, files=None, about=None):
        made.append(tmp_path / f"bundle-{len(made)}")
        results = made[-1] / "input" / "res"
        results.mkdir(parents=True)
        for name, content in ({"mine.csv": sheet(0.7)} if files is None else files).items():
            (results / name).parent.mkdir(exist_ok=True)
            (results / name).write_bytes(content)
        if about is not None:
            (results / "about.json").write_text(json.dumps(about))
        output = made[-1] / "output"
        status = main([str(made[-1] / "input"), str(output), *map(str, arguments)])
        scores, page = output / "scores.json", output / "detailed_results.html"
        return (
            status,
            json.loads(scores.read_text()) if scores.exists() else None,
            page.read_text() if page.exists() else "",
        )

    return run


def seen(ledger):
    with Competition.open(ledger) as competition:
        return [(one.team, one.name) for one in competition.submissions()]


def test_scores_are_those_of_the_ledger_and_replay_free(ledger, bundle, sheet):
    bundle("--ledger", ledger, "--team", "Lead", files={"lead.csv": sheet(0.8, 5)}, about={"claimed": 0.8})
    status, scores, page = bundle("--ledger", ledger, about={"team": "B", "claimed": 0.71})
    numbers = {"charged": 0, "improved": 1, "charges_left": 2, "queries_left": 48, "halted": 0}
    assert (status, scores["accuracy"]) == (0, 0.71)
    assert scores.items() >= numbers.items()
    assert scores["low"] < 0.71 < scores["high"]
    assert "scored (agreed): accuracy 0.71, interval " in page
    with Competition.open(ledger) as competition:
        told = competition.history().iloc[1]
    assert (scores["accuracy"], scores["low"], scores["high"]) == (told["value"], told["low"], told["high"])
    again = bundle("--ledger", ledger, about={"claimed": 0.9})
    assert again[1] == scores
    assert "sent before" in again[2]
    assert seen(ledger) == [("Lead", "lead.csv"), ("Blue", "B: mine.csv")]


def test_only_the_platform_names_the_team(ledger, bundle, sheet, monkeypatch, capsys):
    about = {"team": "user 8", "claimed": 0.7}
    bundle("--ledger", ledger, "--team", "user 7", about=about)
    bundle("--ledger", ledger, about=about, files={"b.csv": sheet(0.7, 1)})
    bundle("--ledger", ledger, "--team", " blue ", about=about, files={"c.csv": sheet(0.7, 2)})
    monkeypatch.delenv(TEAM)
    status, scores, _ = bundle("--ledger", ledger, about=about, files={"d.csv": sheet(0.7, 3)})
    assert (status, scores) == (1, None)
    assert "must be given by the platform" in capsys.readouterr().err
    assert seen(ledger) == [
        ("user 7", "user 8: mine.csv"),
        ("Blue", "user 8: b.csv"),
        ("Blue", "user 8: c.csv"),
    ]


def test_a_team_pays_its_own_charges_and_look_alikes_are_refused(ledger, bundle, sheet):
    for k in range(3):
        bundle("--ledger", ledger, "--team", "Bill", files={"a.csv": sheet(0.3, k)}, about={"claimed": 0.99})
    _, scores, page = bundle(
        "--ledger", ledger, "--team", "BiII", files={"b.csv": sheet(0.7, 1)}, about={"claimed": 0.7}
    )
    assert scores is None
    assert "looks the same" in page
    status, scores, _ = bundle("--ledger", ledger, about={"claimed": 0.7})
    assert (status, scores["charged"], scores["charges_left"]) == (0, 0, 2)


@pytest.mark.parametrize(
    ("files", "about", "words"),
    [
        ({}, None, "one CSV file; there is none"),
        (
            {"a.csv": b"id\n", "<script>.csv": b"id\n"},
            None,
            "&#x27;&lt;script&gt;.csv&#x27;, &#x27;a.csv&#x27;",
        ),
        ({"a.csv": b"id,prediction\nr0,1\n"}, None, "599 ids missing: "),
        ({"a.csv": b"\xff\xfe\x00"}, None, "UTF-8"),
        (None, None, "score that its team claims"),
        *((None, {"claimed": one}, "a number from 0 to 1") for one in (1.5, "much", float("nan"))),
        (None, {"team": 7}, "about.json must be like"),
        (None, {"colour": "blue"}, "about.json must be like"),
        (None, ["Blue"], "about.json must be like"),
        (None, {"team": "a" * 70_000}, "about.json must be like"),
    ],
)
def test_a_refused_submission_gets_a_reason_and_no_scores_and_costs_nothing(
    ledger, bundle, capsys, files, about, words
):
    status, scores, page = bundle("--ledger", ledger, files=files, about=about)
    assert (status, scores) == (1, None)
    assert "NOT SCORED" in page
    assert words in page
    assert "<script>" not in page
    assert "nothing was asked and nothing was charged" in page
    assert "NOT SCORED" in capsys.readouterr().err
    assert seen(ledger) == []


def test_a_link_to_the_labels_is_no_submission(ledger, reference, tmp_path):
    results = tmp_path / "input" / "res"
    results.mkdir(parents=True)
    (results / "mine.csv").symlink_to(reference / "labels.csv")
    (results / "more").symlink_to(reference)
    assert main([str(tmp_path / "input"), str(tmp_path / "output"), "--ledger", str(ledger)]) == 1
    assert "there is none" in (tmp_path / "output" / "detailed_results.html").read_text()


def test_a_halt_is_no_score_and_recorded_answers_stay(tmp_path, reference, bundle, sheet, capsys):
    (reference / "rules.json").write_text(json.dumps(RULES | {"queries": 2}))
    ledger = tmp_path / "board"
    create(reference, ledger=ledger).close()
    for k in range(2):
        bundle("--ledger", ledger, files={"a.csv": sheet(0.7, k)}, about={"claimed": 0.7})
    status, scores, page = bundle("--ledger", ledger, files={"new.csv": sheet(0.8)}, about={"claimed": 0.8})
    assert (status, scores) == (3, {"halted": 1})
    assert "HALTED, NO SCORE" in page
    assert "HALTED, NO SCORE" in capsys.readouterr().err
    status, scores, _ = bundle("--ledger", ledger, files={"old.csv": sheet(0.7, 0)}, about={"claimed": 0.7})
    assert (status, scores["queries_left"]) == (0, 0)


def test_a_lost_folder_does_not_begin_a_new_budget(bundle, tmp_path):
    status, scores, page = bundle("--ledger", tmp_path / "lost")
    assert (status, scores) == (1, None)
    assert "mount the folder" in page
    assert not (tmp_path / "lost").exists()
    (tmp_path / "empty").mkdir()
    assert bundle("--ledger", tmp_path / "empty")[0] == 1
    assert list((tmp_path / "empty").iterdir()) == []


def test_a_competition_is_made_once_from_rules_and_labels(ledger, reference, tmp_path, capsys):
    assert main(["--create", str(reference), "--ledger", str(ledger)]) == 1
    assert "there is a competition 'demo' already" in capsys.readouterr().err
    refuses(InputError, r"there must be rules in .*rules\.json", create, tmp_path, ledger=tmp_path / "other")
    (reference / "labels.csv").unlink()
    refuses(InputError, "there must be labels in", create, reference, ledger=tmp_path / "other")


@pytest.mark.parametrize("arguments", [[], ["--ledger", "board"], ["input", "output"]])
def test_a_missing_argument_is_named(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert "must" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_broken_ledger_does_not_name_files(ledger, bundle, capsys):
    (ledger / "demo" / "ledger.key").chmod(0o644)
    status, scores, page = bundle("--ledger", ledger, about={"claimed": 0.7})
    assert (status, scores) == (1, None)
    assert "sent again, it is charged at most once" in page
    assert str(ledger) not in page + capsys.readouterr().err


def test_it_runs_as_a_program(tmp_path, reference, sheet):
    results = tmp_path / "input" / "res"
    results.mkdir(parents=True)
    (results / "mine.csv").write_bytes(sheet(0.7))
    (results / "about.json").write_text('{"claimed": 0.7}')
    program = [sys.executable, "-m", "reusable_holdout_leaderboard.scoring_program"]
    environment = os.environ | {LEDGER: str(tmp_path / "board")}
    subprocess.run([*program, "--create", str(reference)], env=environment, check=True)
    subprocess.run([*program, str(tmp_path / "input"), str(tmp_path / "output")], env=environment, check=True)
    assert "accuracy" in json.loads((tmp_path / "output" / "scores.json").read_text())


def test_a_server_can_hold_the_ledger_and_the_folder_is_read_only(
    reference, bundle, tmp_path, server_url, capsys
):
    secret = tmp_path / "database"
    secret.write_text(server_url)
    secret.chmod(0o600)
    options = ["--ledger", tmp_path / "board", "--database-file", secret]
    assert main(["--create", str(reference), *map(str, options)]) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "board").rglob("*")}
    assert bundle(*options, about={"claimed": 0.7})[0] == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "board").rglob("*")} == before
    names = sorted(path.name for path in (tmp_path / "board" / "demo").iterdir())
    assert names == ["labels-1.parquet", "ledger.key"]
    assert "swordfish" not in capsys.readouterr().out
