"""How long an answer takes: it must not tell what the guard did for it."""

import asyncio
import contextlib
import time

import httpx
import numpy as np
import pytest
from board_servers import PATIENCE_SECONDS, served
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.security import Problem
from reusable_holdout_leaderboard.web.services import Boards, until_next
from scipy.stats import mannwhitneyu

QUANTUM = 0.05
FALSE_ALARM = 1e-9


@pytest.fixture
def boards(tmp_path):
    return Boards(Settings(folder=tmp_path, answer_seconds=QUANTUM))


def elapsed(boards, call):
    async def run():
        began = time.monotonic()
        with contextlib.suppress(Problem):
            await boards.padded(call)
        return time.monotonic() - began

    return asyncio.run(run())


@given(seconds=st.floats(0, 100), quantum=st.floats(0.001, 1))
def test_an_answer_leaves_at_a_multiple_of_the_quantum(seconds, quantum):
    leaves = (seconds + until_next(quantum, seconds)) / quantum

    assert leaves >= 1 - 1e-9
    assert leaves == pytest.approx(round(leaves), abs=1e-6)
    assert 0 <= until_next(quantum, seconds) <= quantum * (1 + 1e-9)


def test_an_answer_and_a_refusal_take_a_quantum(boards):
    def refuse():
        raise Problem(422, "bad_input", "it does not fit")

    assert elapsed(boards, lambda: None) >= QUANTUM
    assert elapsed(boards, refuse) >= QUANTUM


def alarm(one, other):
    """Probability that two samples of the same distribution differ as much: in rank, or in spread."""
    centre = np.median(np.concatenate([one, other]))
    return min(
        mannwhitneyu(one, other).pvalue,
        mannwhitneyu(abs(one - centre), abs(other - centre)).pvalue,
    )


def test_the_comparison_of_times_finds_a_difference_that_is_there_and_no_other():
    rng = np.random.default_rng(0)
    noise = [rng.exponential(0.001, 150) for _ in range(3)]

    assert alarm(noise[0], noise[1]) > FALSE_ALARM
    assert alarm(noise[0], noise[2] + 0.002) < FALSE_ALARM


@pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")
def test_agreed_and_charged_answers_take_equally_long(make_competition, folder, key_file, predictions):
    """Measured by a client, alternating, so that whatever else the machine does hits both alike."""
    competition = make_competition(queries=160, tolerance=0.9)
    token = competition.add_team("Blue")
    settings = Settings(folder=folder, key_file=key_file, answer_seconds=QUANTUM, submissions_per_minute=0)
    times = {True: [], False: []}
    with (
        served(settings) as server,
        httpx.Client(base_url=f"{server.url}/api/v1", timeout=PATIENCE_SECONDS) as client,
    ):
        client.headers["Authorization"] = f"Bearer {token}"
        for number in range(160):
            prior = 0.95 if number % 2 else 0.0  # it agrees, or it is charged
            body = {"predictions": predictions(0.95, number).tolist(), "prior": prior}
            began = time.perf_counter()
            answer = client.post("/evaluate", json=body)
            seconds = time.perf_counter() - began
            (submission,) = answer.json()["submissions"]
            times[submission["charged"]].append(seconds)
    agreed, charged = np.array(times[False]), np.array(times[True])

    assert min(len(agreed), len(charged)) >= 70
    assert alarm(agreed, charged) > FALSE_ALARM
