"""A board of claims: what stands is free, nobody leads on a claim, and one team's lies halt no other."""

import numpy as np
import pytest
from reusable_holdout_leaderboard import LimitError, Rules, SubmissionError
from scipy.stats import spearmanr

from reusable_holdout import verify
from reusable_holdout.errors import InputError

CLAIMS = {"policy": "claims", "tolerance": None, "prior_error": 0.01, "queries": 200, "vacuous": True}
MANY = {"submissions_per_team": 200}


@pytest.fixture
def claims(make_competition, add_team, predictions):
    """A board, and what a team sends to it: so accurate, and claimed to be that or something else."""
    competition = make_competition(**CLAIMS, **MANY)
    teams = {}

    def send(team, accuracy, claimed=None, variant=0, **more):
        if team not in teams:
            teams[team] = add_team(competition, team)
        stated = accuracy if claimed is None else claimed
        return competition.submit_predictions(
            teams[team], predictions(accuracy, variant), claimed=stated, **more
        )

    return competition, send


def board(competition):
    return [one.team for one in competition.board()]


def test_claims_stand_free_and_the_lead_alone_is_measured(claims):
    competition, send = claims
    first = send("Red", 0.7)
    assert (first.told, first.charged, first.improved) == ("measured 0", False, True)
    second = send("Blue", 0.72, variant=3)
    assert (second.told, second.value, second.charged) == ("agreed", 0.72, False)
    standings = competition.board()
    assert [(one.team, one.leads, one.certified) for one in standings] == [
        ("Red", True, True),
        ("Blue", False, True),
    ]
    assert {(one.rank, one.rank_last) for one in standings} == {(1, 2)}


def test_a_claim_that_is_too_high_never_stands_above_the_measured_lead_it_is_tied_with(claims):
    competition, send = claims
    send("Lead", 0.65)
    send("Honest", 0.64, variant=1)
    assert send("Liar", 0.64, claimed=0.66, variant=2).told == "agreed"
    rows = competition.board()
    assert [(one.team, one.value, one.rank) for one in rows] == [
        ("Lead", pytest.approx(0.65, abs=0.01), 1),
        ("Liar", 0.66, 1),
        ("Honest", 0.64, 1),
    ]
    assert [one.leads for one in rows] == [True, False, False]


def test_sixty_honest_teams_stand_in_the_order_of_the_truth_though_the_best_are_sent_last(
    make_competition, add_team, tmp_path
):
    rng = np.random.default_rng(0)
    labels, right = rng.integers(0, 2, 20_000), rng.random(20_000)
    path = tmp_path / "many.csv"
    path.write_text("label\n" + "".join(f"{label}\n" for label in labels))
    rules = CLAIMS | {"prior_error": 0.005, "classes": (0, 1), "id_column": None}
    competition = make_competition(labels=path, **rules)
    truths = dict(zip(map(str, range(60)), np.linspace(0.80, 0.87, 60).tolist(), strict=True))
    for team, truth in truths.items():
        predicted = np.where(np.roll(right, 331 * int(team)) < truth, labels, 1 - labels)
        claimed = truth + rng.normal(0.0, 0.005)
        competition.submit_predictions(add_team(competition, team), predicted, claimed=claimed)
    rows = competition.board()
    assert sum(one.rank == 1 for one in rows) > 40
    assert spearmanr(range(60, 0, -1), [truths[one.team] for one in rows]).statistic >= 0.85
    last = {one.team: one.place for one in competition.rank_history()}
    assert all(last[one.team] == place for place, one in enumerate(rows[:5], start=1))


def test_one_team_that_lies_is_not_certified_and_halts_nobody(claims):
    competition, send = claims
    send("Lead", 0.8)
    for variant in range(2):
        assert send("Liar", 0.5, claimed=0.75, variant=variant).charged
    lost = send("Liar", 0.5, claimed=0.75, variant=5)
    assert (lost.told, lost.charged) == ("not certified", False)
    assert [competition.charges_left_of(team.id) for team in competition.teams()] == [2, 0]
    assert all(send(f"Team {k}", 0.6, variant=10 + k).told == "agreed" for k in range(30))
    liar = next(one for one in competition.board() if one.team == "Liar")
    assert liar.certified  # by what it was told before
    fresh = send("Late", 0.55, claimed=0.85, variant=70)
    assert fresh.charged
    assert not competition.status().halted
    assert verify(competition._epoch.guard.ledger).sound


def test_a_team_that_was_told_nothing_is_listed_last_without_a_rank(make_competition, add_team, predictions):
    competition = make_competition(**CLAIMS, **MANY, charges=1)
    honest, spent = (add_team(competition, name) for name in ("Honest", "Spent"))
    competition.submit_predictions(honest, predictions(0.7), claimed=0.7)
    competition.submit_predictions(spent, predictions(0.5, 1), claimed=0.9)
    assert competition.submit_predictions(spent, predictions(0.6, 2), claimed=0.6).told == "not certified"
    last = competition.board()[-1]
    assert (last.team, last.certified, last.charges) == ("Spent", True, 1)
    other = add_team(competition, "Other")
    epoch = competition._epoch
    epoch.guard.evaluate_predictions(predictions(0.5, 7), prior=0.9, series="Other")
    competition.submit_predictions(other, predictions(0.9, 3), claimed=0.9)
    last = competition.board()[-1]
    assert (last.team, last.rank, last.certified, last.low, last.high) == ("Other", None, False, 0.0, 1.0)


def test_the_same_predictions_are_one_question_and_may_be_asked_anew(claims):
    competition, send = claims
    send("Lead", 0.8)
    low = send("Low", 0.6, claimed=0.4, variant=1)
    assert low.charged
    shown = send("Other", 0.6, claimed=0.6, variant=1)
    assert (shown.query, shown.value, shown.told) == (low.query, low.value, low.told)
    assert [one.charges for one in competition.board() if one.team == "Other"] == [0]
    anew = send("Other", 0.6, claimed=0.6, variant=1, anew=True)
    assert (anew.told, anew.value) == ("agreed", 0.6)
    assert send("Other", 0.6, claimed=0.6, variant=1, anew=True).replayed


def test_inside_a_tie_the_higher_value_stands_first_and_of_equal_ones_the_earlier(claims, clock):
    competition, send = claims
    send("Lead", 0.9)
    send("Early", 0.6, variant=1)
    clock.now += 60
    send("Late", 0.6, variant=2)
    assert board(competition) == ["Lead", "Early", "Late"]
    clock.now += 60
    send("Late", 0.62, variant=3)
    assert board(competition) == ["Lead", "Late", "Early"]
    clock.now += 60
    send("Latest", 0.62, variant=4)
    assert board(competition) == ["Lead", "Late", "Latest", "Early"]


def test_a_claim_must_come_and_anew_is_for_claims(claims, make_competition, add_team, predictions):
    competition, _send = claims
    team = add_team(competition)
    with pytest.raises(SubmissionError, match="validation score that its team claims"):
        competition.submit_predictions(team, predictions(0.7))
    with pytest.raises(SubmissionError, match="from 0 to 1"):
        competition.submit_predictions(team, predictions(0.7), claimed=1.2)
    assert competition.status().answered == 0
    other = make_competition(slug="other")
    with pytest.raises(SubmissionError, match="boards of claims"):
        other.submit_predictions(add_team(other), predictions(0.7), claimed=0.7, anew=True)


def test_a_renamed_team_and_another_worker_have_the_same_allowance(claims, reopen):
    competition, send = claims
    send("Liar", 0.5, claimed=0.75)
    again = reopen()
    (team,) = again.teams()
    again.rename_team(team.id, "Saint")
    assert again.charges_left_of(team.id) == 1
    assert send("Liar", 0.5, claimed=0.8, variant=4).charged
    assert [one.charges_left_of(team.id) for one in (competition, again)] == [0, 0]


def test_a_merger_gives_no_charges_back(claims):
    competition, send = claims
    send("Lead", 0.8)
    send("Honest", 0.65, variant=1)
    for variant in range(2):
        send("Liar", 0.5, claimed=0.75, variant=3 + variant)
    _, honest, liar = (team.id for team in competition.teams())
    competition.merge_teams(honest, liar)
    assert competition.charges_left_of(honest) == 0
    merged = next(one for one in competition.board() if one.team_id == honest)
    assert (merged.value, merged.charges, merged.certified) == (0.65, 2, True)


def test_rules_of_a_board_say_what_does_not_go_together():
    named = {"slug": "a", "title": "A"}
    assert Rules(**named).check().policy == "claims"
    assert Rules(**named).plan_wish(100_000)["prior_error"] == 0.005
    assert Rules(**named).plan_wish(2_000)["prior_error"] == 0.012
    assert Rules(**named, prior_error=0.02).plan_wish(2_000)["prior_error"] == 0.02
    with pytest.raises(InputError, match="each team's own"):
        Rules(**named, charges_per_team=3).check()
    with pytest.raises(InputError, match="50 charges serve as many teams"):
        Rules(**named, policy="ladder", sign_up="open", most_teams=200).check()
    assert Rules(**named, policy="ladder", sign_up="open", most_teams=50).check()


def test_one_team_cannot_use_up_what_all_are_answered(make_competition, add_team, predictions):
    competition = make_competition(**{**CLAIMS, "queries": 300})
    greedy, other = (add_team(competition, name) for name in ("Greedy", "Other"))
    for variant in range(3):
        competition.submit_predictions(greedy, predictions(0.7, variant), claimed=0.7)
    with pytest.raises(LimitError, match="each team has 3 submissions"):
        competition.submit_predictions(greedy, predictions(0.7, 9), claimed=0.7)
    assert competition.submit_predictions(other, predictions(0.7, 9), claimed=0.7).value == 0.7
    assert Rules(slug="a", title="A", queries=300, submissions_per_team=200).most_submissions == 200
    assert Rules(slug="a", title="A", policy="ladder").most_submissions is None
