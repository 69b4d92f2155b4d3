"""Rules that are changed while a competition runs, and those that cannot be."""

from datetime import UTC, datetime, timedelta

import pytest
from reusable_holdout_leaderboard import ClosedError, LimitError, Rules
from reusable_holdout_leaderboard.rules import CHANGEABLE

from reusable_holdout.errors import InputError


def told(competition):
    return [one.detail for one in competition.changes()]


def test_a_limit_is_another_for_every_worker_from_the_next_submission_on(
    make_competition, add_team, reopen, sheet, database
):
    ours = make_competition(submissions_per_team=1, database=database)
    team = add_team(ours)
    theirs = reopen(database=database)
    theirs.submit(team, sheet(0.7), filename="a.csv", claimed=0.7)
    with pytest.raises(LimitError):
        theirs.submit(team, sheet(0.7, 1), filename="b.csv", claimed=0.7)
    (event,) = ours.change_rules({"submissions_per_team": 2})
    assert event.detail == {"rule": "submissions_per_team", "from": 1, "to": 2}
    assert theirs.rules.submissions_per_team == 2
    assert theirs.submit(team, sheet(0.7, 1), filename="b.csv", claimed=0.7).state == "scored"
    assert theirs.changes() == [event]
    assert theirs.revision == event.revision + 1


def test_a_deadline_can_be_moved_and_a_limit_lifted(make_competition, add_team, sheet, clock):
    now = datetime.fromtimestamp(clock(), UTC)
    competition = make_competition(closes_at=now + timedelta(hours=1), submissions_per_day=1)
    team = add_team(competition)
    clock.now += 7200
    with pytest.raises(ClosedError):
        competition.submit(team, sheet(0.7), filename="a.csv", claimed=0.7)
    later = now + timedelta(hours=3)
    competition.change_rules({"closes_at": later, "submissions_per_day": None})
    for variant in range(2):
        competition.submit(team, sheet(0.7, variant), filename="a.csv", claimed=0.7)
    assert told(competition) == [
        {"rule": "closes_at", "from": (now + timedelta(hours=1)).isoformat(), "to": later.isoformat()},
        {"rule": "submissions_per_day", "from": 1, "to": None},
    ]
    competition.change_rules({"closes_at": now.isoformat()})
    assert "closed at" in competition.status().closed_reason


def test_what_is_the_same_already_is_no_change(competition):
    before = competition.revision
    assert competition.change_rules({"title": "Demo"}) == []
    assert competition.revision == before


FIXED = {
    "slug": "other",
    "metric": "f1",
    "policy": "ladder",
    "queries": 60,
    "confidence": 0.9,
    "classes": ["0", "1", "2"],
    "tolerance": 0.2,
    "id_column": None,
    "prediction_columns": ["y"],
    "blind": True,
    "vacuous": False,
}


@pytest.mark.parametrize("name", FIXED)
def test_what_the_guard_rests_on_cannot_be_changed(competition, name):
    before = competition.rules
    with pytest.raises(InputError, match=rf"^{name} cannot be changed.*nothing was changed.*another slug"):
        competition.change_rules({"title": "Another", name: FIXED[name]})
    assert competition.rules == before
    assert competition.changes() == []


def test_each_rule_is_either_changeable_or_refused():
    fixed = set(Rules.__dataclass_fields__) - CHANGEABLE
    assert {"metric", "metric_parameters", "policy", "queries", "tolerance", "charges", "threshold"} <= fixed
    for name in fixed:
        with pytest.raises(InputError, match="cannot be changed"):
            Rules(slug="demo", title="Demo").changed({name: None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"submissions_per_day": 0}, "submissions_per_day must be a whole number"),
        ({"closes_at": "tomorrow"}, "ISO 8601"),
        ({"closes_at": "2026-01-01T00:00"}, "time zone"),
        ({"closes_at": 5}, "time zone"),
        ({"title": " "}, "not empty"),
        ({"colour": "red"}, "colour unknown"),
    ],
)
def test_a_rule_is_not_changed_to_what_it_cannot_be(competition, changes, words):
    before = competition.rules
    with pytest.raises(InputError, match=words):
        competition.change_rules(changes)
    assert competition.rules == before


def test_after_the_final_standings_only_words_can_be_changed(
    make_competition, add_team, fresh_labels_file, sheet
):
    competition = make_competition(fresh=fresh_labels_file)
    competition.submit(add_team(competition), sheet(0.7, rows=900), filename="a.csv", claimed=0.7)
    competition.freeze()
    competition.final_standings()
    with pytest.raises(ClosedError, match="only description and title"):
        competition.change_rules({"submissions_per_day": 3})
    competition.change_rules({"title": "Over"})
    assert competition.rules.title == "Over"


def test_other_workers_take_a_change_without_opening_again(make_competition, reopen):
    ours = make_competition()
    theirs = reopen()
    ours.change_rules({"title": "Another"})
    assert theirs.rules.title == "Another"
