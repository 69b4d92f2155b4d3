"""RemoteHoldout on a board: the interface of the local guard, over HTTP."""

import contextlib
import math
import pickle

import httpx
import numpy as np
import pandas as pd
import pytest
from board_servers import served
from cases import refuses
from reusable_holdout_leaderboard import ClosedError, LimitError, RemoteHoldout, StoreError, SubmissionError
from reusable_holdout_leaderboard.client.connection import Connection, raised_by
from reusable_holdout_leaderboard.settings import Settings
from servers import unanswered_port

from reusable_holdout import Answer
from reusable_holdout.errors import Halted, HoldoutError, InputError, PlanError


@pytest.fixture
def remote(serve):
    """Serve a competition; return a remote holdout of the team Blue, the competition, and the server."""
    with contextlib.ExitStack() as opened:

        def start(**rules):
            site = serve(**rules)
            holdout = opened.enter_context(RemoteHoldout(site.url, site.token, patience_seconds=5.0))
            return holdout, site.competition, site.server

        yield start


# ---- answers

NAMES = "value charged low high prior query threshold charges_left way told"


def test_an_answer_is_that_of_the_guard(remote, predictions):
    holdout, competition, _ = remote()

    answer = holdout.evaluate(predictions(0.9), prior=0.9, name="first")

    (row,) = competition.history().to_dict("records")
    assert isinstance(answer, Answer)
    for name in NAMES.split():
        assert getattr(answer, name) == row[name], name
    assert math.isnan(answer.nats)  # the cost is only in the history
    assert row["nats"] > 0
    assert (answer.name, answer.replayed, answer.paired) == ("first", False, False)
    assert holdout.evaluate(predictions(0.9), prior=0.9)._replace(nats=0.0) == answer._replace(
        replayed=True, nats=0.0
    )


def test_it_has_the_facts_of_the_guard(remote, predictions):
    holdout, competition, _ = remote()
    holdout.evaluate([predictions(0.9, shift) for shift in range(3)], prior=[0.9, 0.2, 0.9])

    assert holdout.plan == competition.plan
    assert holdout.metric == competition.metric
    assert (holdout.plan.asks, holdout.about["team"], holdout.epoch) == ("claims", "Blue", 1)
    assert (holdout.queries_asked, holdout.answered) == (3, 3)
    assert holdout.queries_left == competition.plan.queries - 3
    assert holdout.charges_left == competition.plan.charges - 1 == 2
    assert (holdout.halted, holdout.halt_reason) == (False, None)
    assert holdout.classes.tolist() == [0, 1]
    assert holdout.ids[:2] == ("r0", "r1")
    pd.testing.assert_frame_equal(holdout.history(), competition.history())


def test_a_board_refuses_other_questions_in_plain_words(remote, predictions):
    holdout, competition, _ = remote()
    plain = r"a board does not.*nothing was asked; ask with evaluate"
    refuses(InputError, plain, holdout.reveal, predictions(0.9), prior=0.9)
    refuses(InputError, plain, holdout.choose, [predictions(0.9), predictions(0.8)], [0.9, 0.8])
    refuses(InputError, plain, holdout.final, predictions(0.9))
    with pytest.raises(InputError, match=f"compares two models, {plain}"):
        holdout.compare(predictions(0.9), predictions(0.8), prior=0.1)
    assert competition.status().answered == 0


def test_an_empty_history_has_the_columns_of_a_full_one(remote, predictions):
    holdout, competition, _ = remote()
    before = holdout.history()
    holdout.evaluate(predictions(0.9), prior=0.9)

    assert before.empty
    assert list(before.columns) == list(holdout.history().columns) == list(competition.history().columns)


def test_probabilities_travel_without_loss(remote, labels):
    holdout, competition, _ = remote(metric="brier")
    rng = np.random.default_rng(3)
    probabilities = rng.dirichlet([1, 1], 600)

    holdout.evaluate(probabilities, prior=0.3)

    again = competition.submit_predictions(competition.teams()[0].id, probabilities, claimed=0.3)
    assert again.replayed


def test_a_claim_is_asked_anew_at_the_teams_expense(remote, predictions):
    holdout, competition, _ = remote()
    first = holdout.evaluate(predictions(0.6), prior=0.95)
    same = holdout.evaluate(predictions(0.6), prior=0.61)
    anew = holdout.evaluate(predictions(0.6), prior=0.61, anew=True)
    assert first.charged
    assert (same.replayed, same.query, same.prior) == (True, 1, 0.95)
    assert (anew.replayed, anew.charged, anew.prior, anew.query) == (False, False, 0.61, 2)
    assert anew.low <= 0.61 <= anew.high
    assert holdout.evaluate(predictions(0.6), prior=0.61, anew=True).replayed
    with pytest.raises(InputError, match=r"anew= is for one set of predictions.*nothing was asked"):
        holdout.evaluate([predictions(0.6)], prior=[0.6], anew=True)
    assert competition.status().queries_asked == 2


# ---- refusals


def test_a_halt_is_a_halt_and_carries_the_answers_before_it(remote, predictions):
    holdout, competition, _ = remote(queries=3)
    asked = [predictions(0.9, shift) for shift in range(4)]
    halt = refuses(Halted, "", holdout.evaluate, list(asked), prior=[0.9, 0.2, 0.2, 0.2])
    assert halt.reason == competition.status().halt_reason == holdout.halt_reason == "queries"
    assert [(one.query, one.charged) for one in halt.answers] == [(1, False), (2, True), (3, True)]
    pd.testing.assert_frame_equal(halt.history, competition.history())
    refuses(Halted, "halted", holdout.evaluate, asked[3], prior=0.9)
    assert (holdout.halted, holdout.queries_left, holdout.charges_left) == (True, 0, 1)
    assert holdout.evaluate(asked[0], prior=0.9).replayed


def test_what_does_not_fit_or_has_no_claim_is_refused_and_costs_nothing(remote, predictions):
    """What predictions and priors may be is the client's own, and is asked of a box in tests of it."""
    holdout, _, _ = remote()
    refuses(InputError, "", holdout.evaluate, predictions(0.9) + 5, prior=0.9)
    refuses(InputError, "prior must be", holdout.evaluate, predictions(0.9), prior=7.0)
    refuses(SubmissionError, "score that its team claims", holdout.evaluate, predictions(0.9))
    assert holdout.queries_asked == 0


def test_limits_and_closing_raise_their_own_errors(remote, predictions):
    holdout, competition, _ = remote(submissions_per_team=1)
    holdout.evaluate(predictions(0.9), prior=0.9)

    refuses(LimitError, "all are used", holdout.evaluate, predictions(0.8), prior=0.8)
    competition.freeze()
    refuses(ClosedError, "frozen", holdout.evaluate, predictions(0.8), prior=0.8)


def test_a_blind_competition_scores_predictions_and_shows_no_score(remote, predictions):
    holdout, _, _ = remote(blind=True)

    refuses(HoldoutError, "blind", holdout.evaluate, predictions(0.9), prior=0.9)
    assert holdout.queries_asked == 1
    assert holdout.charges_left is None


def test_a_wrong_token_is_refused_at_once(remote):
    _, _, server = remote()

    refuses(HoldoutError, "token", RemoteHoldout, server.url, "rh_wrong")


@pytest.mark.parametrize("url", ["", "localhost:8000", "ftp://x", "http://", "http://me:word@host"])
def test_a_wrong_address_is_refused(url):
    refuses(InputError, "url must be", Connection, url)


@pytest.mark.parametrize(
    ("code", "details", "kind"),
    [
        ("bad_submission", {"problems": ["a", "b"]}, SubmissionError),
        ("plan", {"nearest": {"rows": 3.0}}, PlanError),
        ("limit", {}, LimitError),
        ("unauthorized", {}, HoldoutError),
    ],
)
def test_each_refusal_of_the_server_has_its_error(code, details, kind):
    error = raised_by({"code": code, "message": "said", "details": details})
    assert type(error) is kind
    assert vars(error).items() >= details.items()


# ---- connections that break


class Flaky(httpx.BaseTransport):
    """Transport that loses some requests or answers."""

    def __init__(self, real, troubles):
        self._real, self._troubles = real, list(troubles)
        self.sent = 0

    def close(self):
        self._real.close()

    def handle_request(self, request):
        trouble = self._troubles.pop(0) if self._troubles else None
        if trouble == "refused":
            raise httpx.ConnectError("refused")
        if isinstance(trouble, httpx.Response):
            return trouble
        self.sent += 1
        response = self._real.handle_request(request)
        if trouble == "lost":
            response.read()
            response.close()
            raise httpx.ReadError("reset")
        return response


def with_troubles(holdout, *troubles):
    client = holdout._transport._connection._client
    client._transport = Flaky(client._transport, troubles)
    return client._transport


def test_a_question_whose_answer_was_lost_is_repeated_and_charged_once(remote, predictions):
    holdout, competition, _ = remote()
    transport = with_troubles(holdout, "lost", "refused", "lost")

    answer = holdout.evaluate(predictions(0.9), prior=0.2)

    assert transport.sent == 3
    assert answer.charged
    assert answer.replayed
    assert competition.status().queries_asked == 1
    assert holdout.charges_left == competition.plan.charges - 1


@pytest.mark.parametrize("status", [502, 503, 504])
def test_a_server_that_is_busy_is_asked_again(remote, predictions, status):
    holdout, _, _ = remote()
    with_troubles(holdout, httpx.Response(status, text="busy"), httpx.Response(status, text="busy"))

    assert holdout.evaluate(predictions(0.9), prior=0.9).query == 1


def test_a_rate_is_waited_for(remote, predictions, monkeypatch):
    holdout, _, _ = remote()
    waited = []
    monkeypatch.setattr("reusable_holdout_leaderboard.client.connection.time.sleep", waited.append)
    error = {"error": {"code": "rate", "message": "too many", "details": {}}}
    with_troubles(holdout, httpx.Response(429, json=error, headers={"Retry-After": "3"}))

    assert holdout.evaluate(predictions(0.9), prior=0.9).query == 1
    assert waited == [3.0]


def test_another_server_is_no_leaderboard(remote, predictions):
    holdout, _, _ = remote()
    with_troubles(holdout, httpx.Response(404, text="<html>"))

    refuses(HoldoutError, "got status 404", holdout.evaluate, predictions(0.9), prior=0.9)


def test_an_unreachable_server_is_given_up_after_some_time():
    with (
        unanswered_port() as port,
        Connection(f"http://127.0.0.1:{port}", patience_seconds=0.2) as connection,
        pytest.raises(StoreError, match="cannot be reached"),
    ):
        connection.get("status")


def test_a_request_that_must_not_be_repeated_is_sent_once(remote):
    holdout, _, _ = remote()
    transport = with_troubles(holdout, "lost")

    with pytest.raises(StoreError, match="it is unknown if this was done"):
        holdout._transport._connection.post("admin/add-team", json={"team": "x"})
    assert transport.sent == 1


# ---- as an object


def test_its_repr_shows_its_address_and_not_its_token(remote):
    holdout, _, server = remote()

    assert repr(holdout) == f"<RemoteHoldout: accuracy, 600 rows, at {server.url}>"
    assert "rh_" not in repr(holdout._transport._connection)


def test_it_goes_to_worker_processes(remote, predictions):
    holdout, _, _ = remote()
    first = holdout.evaluate(predictions(0.9), prior=0.9)

    with pickle.loads(pickle.dumps(holdout)) as copy:
        assert copy.evaluate(predictions(0.9), prior=0.9)._replace(nats=0.0) == first._replace(
            replayed=True, nats=0.0
        )


def test_a_competition_is_named_by_its_address(make_competition, folder, key_file, predictions):
    competition = make_competition(slug="other")
    make_competition()
    token = competition.add_team("Blue")
    with (
        served(Settings(folder=folder, key_file=key_file, answer_seconds=0.0)) as server,
        RemoteHoldout(f"{server.url}/c/other/", token) as holdout,
    ):
        holdout.evaluate(predictions(0.9), prior=0.9)
        assert holdout.about["competition"] == "other"
    assert competition.status().queries_asked == 1
