"""The scoring program for other platforms: scores through the guard, refusals that cost nothing, halts that show."""

import json
import os
import subprocess
import sys

import pytest
from reusable_holdout_leaderboard import Competition, SubmissionError
from reusable_holdout_leaderboard.platforms.codabench import (
    DATABASE_FILE,
    LEDGER,
    TEAM,
    create,
    evaluate,
    main,
    score,
)

from reusable_holdout.errors import BudgetError, Halted, InputError

pytestmark = pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")

RULES = {
    "slug": "demo",
    "title": "Demo",
    "policy": "thresholdout",
    "queries": 50,
    "tolerance": None,
    "charges": 2,
}


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    monkeypatch.delenv(LEDGER, raising=False)
    monkeypatch.delenv(DATABASE_FILE, raising=False)
    monkeypatch.delenv(TEAM, raising=False)


@pytest.fixture
def reference(tmp_path, labels_file):
    """The organiser's folder: labels and rules."""
    folder = tmp_path / "reference"
    folder.mkdir()
    labels_file.rename(folder / "labels.csv")
    (folder / "rules.json").write_text(json.dumps(RULES))
    return folder


@pytest.fixture
def ledger(tmp_path, reference):
    """A folder with the competition in it."""
    folder = tmp_path / "board"
    create(reference, ledger=folder).close()
    return folder


@pytest.fixture
def bundle(tmp_path, sheet):
    """Run the scoring program on a bundle; return exit status, scores and the page of details."""
    made = []

    def run(*arguments, files=None, about=None, ref=None):
        made.append(tmp_path / f"bundle-{len(made)}")
        results = made[-1] / "input" / "res"
        results.mkdir(parents=True)
        for name, content in ({"mine.csv": sheet(0.7)} if files is None else files).items():
            (results / name).parent.mkdir(exist_ok=True)
            (results / name).write_bytes(content)
        if about is not None:
            (results / "about.json").write_text(json.dumps(about))
        if ref is not None:
            (made[-1] / "input" / "ref").symlink_to(ref)
        output = made[-1] / "output"
        status = main([str(made[-1] / "input"), str(output), *map(str, arguments)])
        scores = output / "scores.json"
        page = output / "detailed_results.html"
        return (
            status,
            json.loads(scores.read_text()) if scores.exists() else None,
            page.read_text() if page.exists() else "",
        )

    return run


def asked(ledger):
    with Competition.open(ledger) as competition:
        return competition.status().queries_asked


def test_a_claim_that_holds_is_the_score_and_free(ledger, bundle):
    status, scores, page = bundle("--ledger", ledger, about={"team": "Blue", "claimed": 0.71})
    assert status == 0
    assert scores["accuracy"] == 0.71
    assert scores["low"] < 0.71 < scores["high"]
    assert {
        name: scores[name] for name in ("charged", "improved", "charges_left", "queries_left", "halted")
    } == {
        "charged": 0,
        "improved": 1,
        "charges_left": 2,
        "queries_left": 49,
        "halted": 0,
    }
    assert "certified between" in page
    assert page.count("0.71") == 1


def test_scores_are_those_of_the_ledger(ledger, bundle):
    scores = bundle("--ledger", ledger, about={"claimed": 0.2})[1]
    with Competition.open(ledger) as competition:
        told = competition.history().iloc[0]
    assert (scores["accuracy"], scores["low"], scores["high"]) == (told["value"], told["low"], told["high"])
    assert scores["charged"] == 1
    assert scores["charges_left"] == told["charges_left"] < 2


def test_the_same_file_is_answered_again_free_by_another_process(ledger, bundle):
    first = bundle("--ledger", ledger, about={"team": "Blue", "claimed": 0.2})[1]
    again = bundle("--ledger", ledger, about={"team": "Blue", "claimed": 0.9})
    assert again[1] == first
    assert "sent before" in again[2]
    assert asked(ledger) == 1


def test_a_team_is_compared_with_its_own_best(ledger, bundle, sheet):
    bundle("--ledger", ledger, "--team", "Blue", about={"claimed": 0.72})
    bundle("--ledger", ledger, "--team", "Red", files={"r.csv": sheet(0.5, 1)})
    bundle("--ledger", ledger, "--team", " blue ", files={"b.csv": sheet(0.7, 1)})
    with Competition.open(ledger) as competition:
        assert [team.name for team in competition.teams()] == ["Blue", "Red"]
        priors = [(one.team, one.prior) for one in competition.submissions()]
    assert priors == [("Blue", 0.72), ("Red", 0.5), ("Blue", 0.72)]


def test_a_user_whose_name_looks_like_a_teams_spends_none_of_its_charges(ledger, bundle, sheet):
    bundle("--ledger", ledger, "--team", "Bill")
    _, scores, page = bundle("--ledger", ledger, "--team", "BiII", files={"b.csv": sheet(0.7, 1)})
    assert "looks the same" in page
    assert "score" not in (scores or {})
    with Competition.open(ledger) as competition:
        assert [one.team for one in competition.submissions()] == ["Bill"]


def test_whose_a_submission_is_the_platform_says_and_never_the_submission(ledger, bundle, sheet, monkeypatch):
    bundle("--ledger", ledger, "--team", "user 7", about={"team": "user 8", "claimed": 0.7})
    bundle("--ledger", ledger, about={"team": "user 7", "claimed": 0.7}, files={"b.csv": sheet(0.7, 1)})
    monkeypatch.setenv(TEAM, "user 8")
    bundle("--ledger", ledger, about={"team": "user 7", "claimed": 0.7}, files={"c.csv": sheet(0.7, 2)})
    with Competition.open(ledger) as competition:
        found = [(one.team, one.name) for one in competition.submissions()]
    assert found == [
        ("user 7", "user 8: mine.csv"),
        ("everyone", "user 7: b.csv"),
        ("user 8", "user 7: c.csv"),
    ]


def test_claims_need_to_know_whose_they_are(tmp_path, reference, bundle, sheet, monkeypatch):
    claims = {"slug": "demo", "title": "Demo", "queries": 200, "prior_error": 0.05, "vacuous": True}
    (reference / "rules.json").write_text(json.dumps(claims))
    folder = tmp_path / "claims"
    create(reference, ledger=folder).close()
    status, scores, page = bundle("--ledger", folder, about={"team": "user 7", "claimed": 0.7})
    assert (status, scores) == (1, None)
    assert "the platform must say whose a submission is" in page
    assert asked(folder) == 0
    monkeypatch.setenv(TEAM, "user 7")
    for k in range(3):  # a liar spends what is its own
        bundle("--ledger", folder, about={"claimed": 0.99}, files={"a.csv": sheet(0.3, k)})
    monkeypatch.setenv(TEAM, "user 8")
    status, scores, _ = bundle("--ledger", folder, about={"team": "user 7", "claimed": 0.7})
    assert (status, scores["accuracy"], scores["charged"]) == (0, 0.7, 0)


def test_the_environment_can_name_the_folder(ledger, bundle, monkeypatch):
    monkeypatch.setenv(LEDGER, str(ledger))
    assert bundle()[0] == 0


def test_one_table_in_a_folder_of_a_zip_file_is_found(ledger, bundle, sheet):
    files = {"mine/predictions.csv": sheet(0.6), "__MACOSX/._predictions.csv": b"junk", "read.me": b""}
    assert bundle("--ledger", ledger, files=files)[0] == 0


@pytest.mark.parametrize(
    ("files", "about", "said"),
    [
        ({}, None, "one CSV or Parquet file; there is none"),
        ({"a.csv": b"id\n", "b.csv": b"id\n"}, None, "&#x27;a.csv&#x27;, &#x27;b.csv&#x27;"),
        ({"a.csv": b"id,prediction\nr0,1\n"}, None, "599 ids missing: "),
        ({"a.csv": b"\xff\xfe\x00"}, None, "UTF-8"),
        (None, {"claimed": 1.5}, "a number from 0 to 1"),
        (None, {"claimed": "much"}, "a number from 0 to 1"),
        (None, {"claimed": float("nan")}, "a number from 0 to 1"),
        (None, {"team": 7}, "about.json must be like"),
        (None, {"colour": "blue"}, "about.json must be like"),
        (None, ["Blue"], "about.json must be like"),
        (None, {"team": "a" * 70_000}, "about.json must be like"),
    ],
)
def test_what_does_not_fit_gets_a_reason_no_scores_and_costs_nothing(
    ledger, bundle, capsys, files, about, said
):
    status, scores, page = bundle("--ledger", ledger, files=files, about=about)
    assert (status, scores) == (1, None)
    assert "NOT SCORED" in page
    assert said in page
    assert "nothing was asked and nothing was charged" in page
    assert "NOT SCORED" in capsys.readouterr().err
    assert asked(ledger) == 0


def test_a_link_to_the_labels_is_no_submission(ledger, bundle, reference, tmp_path):
    results = tmp_path / "input" / "res"
    results.mkdir(parents=True)
    (results / "mine.csv").symlink_to(reference / "labels.csv")
    (results / "more").symlink_to(reference)
    assert main([str(tmp_path / "input"), str(tmp_path / "output"), "--ledger", str(ledger)]) == 1
    assert "there is none" in (tmp_path / "output" / "detailed_results.html").read_text()


def test_a_name_cannot_write_html(ledger, bundle):
    page = bundle("--ledger", ledger, files={"<script>.csv": b"", "b.csv": b""})[2]
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


@pytest.fixture
def halted(ledger, sheet, tmp_path):
    """A ledger whose guard has halted."""
    with pytest.raises(Halted):
        for number in range(10):
            path = tmp_path / f"low-{number}.csv"
            path.write_bytes(sheet(0.7, number))
            score(path, ledger=ledger, claimed=0.0)
    return ledger


def test_a_halt_cannot_be_taken_for_a_score(halted, bundle, sheet, capsys):
    status, scores, page = bundle("--ledger", halted, files={"new.csv": sheet(0.8)}, about={"claimed": 0.8})
    assert status == 3
    assert scores == {"halted": 1}
    assert "HALTED, NO SCORE" in page
    assert "HALTED, NO SCORE" in capsys.readouterr().err


def test_after_a_halt_recorded_answers_are_still_told(halted, bundle, sheet):
    status, scores, _ = bundle("--ledger", halted, files={"old.csv": sheet(0.7, 0)})
    assert status == 0
    assert scores["charges_left"] == 0


def test_a_folder_that_got_lost_does_not_begin_a_new_budget(bundle, tmp_path, capsys):
    status, scores, page = bundle("--ledger", tmp_path / "lost")
    assert (status, scores) == (1, None)
    assert "mount the folder" in page
    assert not (tmp_path / "lost").exists()
    (tmp_path / "empty").mkdir()
    assert bundle("--ledger", tmp_path / "empty")[0] == 1
    assert list((tmp_path / "empty").iterdir()) == []


def test_the_platforms_labels_must_be_those_of_the_ledger(
    ledger, reference, bundle, next_labels_file, tmp_path
):
    assert bundle("--ledger", ledger, ref=reference)[0] == 0
    others = tmp_path / "others"
    others.mkdir()
    next_labels_file.rename(others / "labels.csv")
    status, scores, page = bundle("--ledger", ledger, ref=others)
    assert (status, scores) == (1, None)
    assert "they are others" in page
    assert asked(ledger) == 1


def test_making_it_twice_is_refused(ledger, reference, capsys):
    assert main(["--create", str(reference), "--ledger", str(ledger)]) == 1
    assert "there is a competition 'demo' already" in capsys.readouterr().err


def test_making_needs_rules_and_labels(tmp_path, reference):
    with pytest.raises(InputError, match=r"rules must lie in .*rules\.json"):
        create(tmp_path, ledger=tmp_path / "board")
    (reference / "labels.csv").unlink()
    with pytest.raises(InputError, match="labels must lie in"):
        create(reference, ledger=tmp_path / "board")


@pytest.mark.parametrize("arguments", [[], ["--ledger", "board"], ["input", "output"]])
def test_what_is_missing_on_the_command_line_is_named(arguments, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(arguments) == 1
    assert "must" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_broken_ledger_says_no_names_of_files(ledger, bundle, capsys):
    (ledger / "demo" / "ledger.key").chmod(0o644)
    status, scores, page = bundle("--ledger", ledger)
    assert (status, scores) == (1, None)
    assert "sent again, it is charged once at most" in page
    assert str(ledger) not in page + capsys.readouterr().err


def test_a_blind_competition_tells_no_number(tmp_path, reference, bundle):
    (reference / "rules.json").write_text(json.dumps(RULES | {"blind": True}))
    assert main(["--create", str(reference), "--ledger", str(tmp_path / "board")]) == 0
    status, scores, page = bundle("--ledger", tmp_path / "board")
    assert status == 0
    assert scores == {"queries_left": 49, "halted": 0}
    assert "hidden" in page


def test_it_runs_as_a_program(tmp_path, reference, sheet):
    results = tmp_path / "input" / "res"
    results.mkdir(parents=True)
    (results / "mine.csv").write_bytes(sheet(0.7))
    program = [sys.executable, "-m", "reusable_holdout_leaderboard.platforms.codabench"]
    environment = os.environ | {LEDGER: str(tmp_path / "board")}
    subprocess.run([*program, "--create", str(reference)], env=environment, check=True)
    subprocess.run([*program, str(tmp_path / "input"), str(tmp_path / "output")], env=environment, check=True)
    assert "accuracy" in json.loads((tmp_path / "output" / "scores.json").read_text())


# ---- EvalAI


def test_evalai_gets_its_form_of_a_result(ledger, reference, sheet, tmp_path, monkeypatch):
    monkeypatch.setenv(LEDGER, str(ledger))
    path = tmp_path / "sent.csv"
    path.write_bytes(sheet(0.7))
    metadata = {"participant_team": 5, "participant_team_name": "Blue", "id": 123}
    labels = str(reference / "labels.csv")
    output = evaluate(labels, str(path), "dev", split="test", submission_metadata=metadata, claimed=0.7)
    assert output["result"] == [{"test": output["submission_result"]}]
    assert output["submission_result"]["accuracy"] == 0.7
    assert "certified" in output["submission_metadata"]
    with Competition.open(ledger) as competition:
        assert [team.name for team in competition.teams()] == ["team 5"]
    assert list(evaluate(labels, str(path), "dev")["result"][0]) == ["dev"]


def test_evalai_phases_have_the_competition_of_their_name(ledger, reference, sheet, tmp_path):
    (reference / "rules.json").write_text(json.dumps(RULES | {"slug": "final", "metric": "zero_one_loss"}))
    create(reference, ledger=ledger).close()
    path = tmp_path / "sent.csv"
    path.write_bytes(sheet(0.7))
    output = evaluate(str(reference / "labels.csv"), str(path), "final", ledger=ledger)
    assert "zero_one_loss" in output["submission_result"]
    with pytest.raises(InputError, match="must be one of demo, final"):
        evaluate(str(reference / "labels.csv"), str(path), "other", ledger=ledger)


def test_evalais_worker_survives_a_halt_and_a_bad_file(halted, reference, sheet, tmp_path):
    path = tmp_path / "sent.csv"
    path.write_bytes(sheet(0.8))
    with pytest.raises(BudgetError, match="HALTED, NO SCORE"):
        evaluate(str(reference / "labels.csv"), str(path), "demo", ledger=halted)
    path.write_bytes(b"id,prediction\n")
    with pytest.raises(SubmissionError, match="nothing was charged"):
        evaluate(str(reference / "labels.csv"), str(path), "demo", ledger=halted)


def test_a_server_can_hold_the_ledger(reference, sheet, bundle, tmp_path, server_url, capsys):
    secret = tmp_path / "database"
    secret.write_text(server_url)
    secret.chmod(0o600)
    options = ["--ledger", tmp_path / "board", "--database-file", secret]
    assert main(["--create", str(reference), *map(str, options)]) == 0
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "board").rglob("*")}
    assert bundle(*options)[0] == 0
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "board").rglob("*")}
    assert after == before  # so that it can be mounted read-only
    assert sorted(path.name for path in (tmp_path / "board" / "demo").iterdir()) == [
        "labels-1.parquet",
        "ledger.key",
    ]
    assert "swordfish" not in capsys.readouterr().out
