"""The redaction of a full log, where the holdout is kept, to a developer's."""

import numpy as np
import pytest
from cases import refuses

pytest.importorskip("inspect_ai")

from inspect_ai import Task
from inspect_ai.log import read_eval_log
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate
from integrations.evals.inspect.everything import found_in, texts_in
from integrations.evals.inspect.judged_tasks import IDS, SCORES, SETTINGS, samples, secrets_of, talkative
from integrations.evals.inspect.test_guarded_task import OF_INSPECT
from reusable_holdout_evals.inspect import guarded_task, new_guard, redact
from reusable_holdout_evals.inspect.scorer import WITHHELD

from reusable_holdout.cli import main
from reusable_holdout.errors import Halted, InputError

pytestmark = [*OF_INSPECT, pytest.mark.usefixtures("inspects_home")]
MEAN = float(np.mean(list(SCORES.values())))
_SECRETS = [secret for name in IDS for secret in secrets_of(name)]


@pytest.fixture
def full(evaluate):
    """The log of an evaluation that nobody guarded."""
    log = evaluate(Task(samples(), solver=generate(), scorer=talkative()), epochs=2, log_level="error")
    assert log.status == "success"
    return log.location


@pytest.fixture
def ledger(tmp_path):
    with new_guard(samples(), ledger=tmp_path / "guard.db", **SETTINGS):
        return tmp_path / "guard.db"


@pytest.mark.parametrize("ending", ["eval", "json"])
def test_the_developers_log_has_the_answer_and_nothing_else_of_the_scores(ending, full, ledger, tmp_path):
    out = tmp_path / "public" / f"log.{ending}"
    out.parent.mkdir()
    answer = redact(full, out, ledger=ledger, prior=0.5, show=["repository"])
    assert answer.low < MEAN < answer.high
    log = read_eval_log(str(out))
    assert log.results.scores[0].metrics["answer"].value == answer.value
    assert log.results.scores[0].name == "guarded_talkative"
    assert len(log.samples) == 2 * len(IDS)
    scores = {one.scores["guarded_talkative"].value for one in log.samples}
    assert scores == {one.target for one in log.samples} == {WITHHELD}
    assert log.samples[3].output.completion == f"say {log.samples[3].id}"
    assert all(set(one.metadata) == {"repository"} for one in log.samples)
    assert found_in(texts_in(out.parent), _SECRETS) == {}
    assert found_in(texts_in(tmp_path / "logs"), _SECRETS)  # the search finds them where they are


@scorer(metrics=[mean()])
def attaching():
    """Scores, and attaches the target to what was answered, whose log Inspect writes afterwards."""

    async def score(state, target):
        state.output.metadata = {"wanted": target.text}
        state.output.choices[0].message.metadata = {"wanted": target.text}
        return Score(value=0.5)

    return score


def test_what_a_scorer_attaches_to_an_output_stays_behind(evaluate, ledger, tmp_path):
    log = evaluate(Task(samples(), solver=generate(), scorer=attaching()))
    public = tmp_path / "public" / "log.eval"
    public.parent.mkdir()
    redact(log.location, public, ledger=ledger, prior=0.5)
    assert found_in(texts_in(public.parent), _SECRETS) == {}
    assert found_in(texts_in(tmp_path / "logs"), _SECRETS)
    assert read_eval_log(str(public)).samples[3].output.choices[0].message.text.startswith("say q")


def test_the_log_of_a_guarded_evaluation_asks_the_same_question(full, ledger, evaluate, tmp_path):
    plain = Task(samples(), solver=generate(), scorer=talkative())
    task = guarded_task(plain, ledger=ledger, prior=0.5, private=["hint"])
    guarded = evaluate(task, epochs=2, log_level="error")
    assert guarded.results.scores[0].metrics["replayed"].value == 0
    assert redact(full, tmp_path / "public.eval", ledger=ledger, prior=0.5).replayed


def test_an_incumbents_log_is_compared(full, ledger, tmp_path):
    answer = redact(full, tmp_path / "public.eval", ledger=ledger, prior=0.0, incumbent=full)
    assert (answer.paired, answer.value) == (True, 0.0)
    log = read_eval_log(str(tmp_path / "public.eval"))
    assert log.results.scores[0].metrics["difference"].value == 0.0


def test_the_command_writes_the_same(full, ledger, tmp_path, capsys):
    out = tmp_path / "public.eval"
    asked = ["redact", "--inspect", full, "--ledger", str(ledger), "--prior", "0.5", "--show", "repository"]
    assert main([*asked, "--out", str(out)]) == 0
    assert capsys.readouterr().out.startswith("your 0.5000 stands: the truth is in [")
    assert read_eval_log(str(out)).results.scores[0].metrics["prior"].value == 0.5
    assert main([*asked, "--out", str(out)]) == 1
    assert "must be a new one" in capsys.readouterr().err


def test_what_is_refused_writes_nothing(full, ledger, tmp_path):
    out = tmp_path / "public.eval"
    refuses(InputError, "one of them", redact, full, out, prior=0.5)
    with new_guard(samples(), ledger=None, **SETTINGS | {"queries": 1}) as guard:
        redact(full, tmp_path / "first.eval", guard=guard, prior=0.5)
        refuses(Halted, "", redact, full, out, guard=guard, prior=0.6)
    assert not out.exists()
    out.touch()
    refuses(InputError, "must be a new one", redact, full, out, ledger=ledger, prior=0.5)
