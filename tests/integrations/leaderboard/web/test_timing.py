"""The time of an answer does not tell what the guard did."""

import asyncio
import contextlib
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reusable_holdout_leaderboard.settings import Settings
from reusable_holdout_leaderboard.web.problems import Problem
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
    """Return the probability that two samples of the same distribution differ as much, in rank or in spread."""
    centre = np.median(np.concatenate([one, other]))
    return min(
        mannwhitneyu(one, other).pvalue,
        mannwhitneyu(abs(one - centre), abs(other - centre)).pvalue,
    )


def test_the_comparison_of_times_finds_differences_and_invents_none():
    rng = np.random.default_rng(0)
    noise = [rng.exponential(0.001, 150) for _ in range(3)]

    assert alarm(noise[0], noise[1]) > FALSE_ALARM
    assert alarm(noise[0], noise[2] + 0.002) < FALSE_ALARM


@pytest.mark.long("integrations/reusable_holdout_leaderboard", "reusable_holdout")
def test_free_and_charged_answers_take_equally_long(serve, sheet):
    """Measured by a client that alternates, so that the load of the machine affects both alike."""
    site = serve(queries=200, submissions_per_team=200, charges=200, settings={"answer_seconds": QUANTUM})
    times = {True: [], False: []}
    for number in range(160):
        content = sheet(0.95, number)
        began = time.perf_counter()
        answer = site.send(content, claimed=0.95 if number % 2 else 0.0)
        seconds = time.perf_counter() - began
        times[answer.json()["charged"]].append(seconds)
    free, charged = np.array(times[False]), np.array(times[True])
    assert min(len(free), len(charged)) >= 70
    assert alarm(free, charged) > FALSE_ALARM
