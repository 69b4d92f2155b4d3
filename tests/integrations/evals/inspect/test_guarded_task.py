"""inspect eval of a guarded task: metrics are the guard's answer, and whatever goes wrong marks the log."""

import contextvars
import math

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import Epochs, Task, eval_retry
from inspect_ai import eval as inspect_eval
from inspect_ai.dataset import Sample
from inspect_ai.scorer import SampleScore, Score, accuracy, choice, match, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, multiple_choice, solver
from inspect_ai.util import registry_info
from integrations.evals.inspect.judged_tasks import IDS, ROWS, model, samples
from reusable_holdout_evals.inspect import guarded, guarded_task, new_guard
from reusable_holdout_evals.inspect.scorer import _SCORED, WITHHELD

from reusable_holdout import ReusableHoldout, verify
from reusable_holdout.errors import InputError, LedgerError

OF_INSPECT = [  # it leaves streams open, and is behind its libraries
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
    pytest.mark.long("integrations/reusable_holdout_evals/inspect", "reusable_holdout"),
]
pytestmark = OF_INSPECT
TRUTH = dict(zip(IDS, np.random.default_rng(1).beta(6, 2, ROWS), strict=True))
MEAN = float(np.mean(list(TRUTH.values())))
SETTINGS = {"queries": 10, "tolerance": 0.4, "seed": 0, "vacuous": True}


@scorer(metrics=[mean()])
def known(shift=0.0, scale=1.0):
    async def score(state, target):
        assert target.text == f"target-of-{state.sample_id}!"
        return Score(value=scale * TRUTH[state.sample_id] + shift * (state.epoch - 1))

    return score


@scorer(metrics=[mean()])
def strange(value):
    async def score(state, target):
        return Score(value=value)

    return score


@pytest.fixture
def guard(tmp_path):
    with new_guard(samples(), ledger=tmp_path / "guard.db", **SETTINGS) as guard:
        yield guard


def task(*scorers, guard, prior=0.75, solver=None, **settings):
    of_task = {"epochs": settings.pop("epochs")} if "epochs" in settings else {}
    plain = Task(samples(), solver=solver or generate(), scorer=list(scorers) or [known()], **of_task)
    return guarded_task(plain, guard=guard, prior=prior, **settings)


def metrics_of(log, number=0):
    assert log.status == "success", log.error
    return {name: one.value for name, one in log.results.scores[number].metrics.items()}


def test_the_metrics_are_the_guards_answer_and_no_sample_has_a_score_or_a_target(evaluate, guard):
    log = evaluate(task(guard=guard))
    found = metrics_of(log)
    answer = guard.history().iloc[-1]
    assert found == {
        "answer": answer["value"],
        "low": answer["low"],
        "high": answer["high"],
        "prior": 0.75,
        "charged": 0.0,
        "charges_left": guard.charges_left,
        "replayed": 0.0,
    }
    assert found["low"] < MEAN < found["high"]
    assert log.results.scores[0].name == "guarded_known"
    assert {one.target for one in log.samples} == {WITHHELD}
    assert {one.scores["guarded_known"].value for one in log.samples} == {WITHHELD}
    assert all(one.scores["guarded_known"].explanation is None for one in log.samples)
    assert log.reductions is None or not log.reductions


def test_the_guard_is_asked_about_the_mean_of_the_epochs_by_id(evaluate, guard):
    evaluate(task(known(shift=-0.05), guard=guard, epochs=3))
    assert guard.queries_asked == 1
    assert guard.history().iloc[-1]["name"] == "known"
    ids = sorted(IDS)
    repeats = np.array([[TRUTH[name] - 0.05 * epoch for epoch in range(3)] for name in ids])
    assert guard.evaluate_predictions(repeats, prior=0.75).replayed


def test_the_same_evaluation_again_is_replayed_and_free(evaluate, guard):
    first = metrics_of(evaluate(task(guard=guard)))
    again = metrics_of(evaluate(task(guard=guard)))
    assert (again.pop("replayed"), first.pop("replayed")) == (1.0, 0.0)
    assert again == first
    assert guard.queries_asked == 1


def test_each_scorer_is_a_question_with_its_prior(evaluate, guard):
    plain = task(known(), strange(1), guard=guard, prior={"known": 0.75, "strange": 0.9})
    log = evaluate(plain)
    assert metrics_of(log)["prior"] == 0.75
    assert metrics_of(log, 1)["prior"] == 0.9
    assert list(guard.history()["name"]) == ["known", "strange"]


def test_a_ledger_is_opened_with_its_groups(evaluate, tmp_path):
    ledger = tmp_path / "grouped.db"
    with new_guard(samples(), ledger=ledger, groups="repository", **SETTINGS | {"tolerance": 0.6}):
        pass
    with pytest.raises(LedgerError):
        guarded_task(Task(samples(), solver=generate(), scorer=known()), ledger=ledger, prior=0.75)
    plain = Task(samples(), solver=generate(), scorer=known())
    assert (
        metrics_of(evaluate(guarded_task(plain, ledger=ledger, groups="repository", prior=0.75)))["low"] >= 0
    )
    assert verify(ledger).sound


def test_a_halt_is_the_logs_error(evaluate, tmp_path):
    settings = SETTINGS | {"tolerance": None, "queries": 1}
    with new_guard(samples(), ledger=None, charges=1, **settings) as guard:
        metrics_of(evaluate(task(guard=guard)))
        log = evaluate(task(known(scale=0.5), guard=guard))
    assert log.status == "error"
    assert "the guard has halted" in log.error.message
    assert log.results is None or not log.results.scores


@pytest.mark.parametrize("options", [{"limit": 5}, {"sample_id": ["q1", "q3"]}])
def test_samples_that_are_left_out_are_named_and_nothing_is_asked(options, evaluate, guard):
    log = evaluate(task(guard=guard), **options)
    assert log.status == "error"
    assert f"a question needs all {ROWS} samples" in log.error.message
    assert "'q10'" in log.error.message
    assert guard.queries_asked == 0


@solver
def _failing(which):
    async def solve(state, generate):
        if (state.sample_id, state.epoch) in which:
            raise RuntimeError("out of memory")
        return state

    return solve


@pytest.mark.parametrize(
    ("epochs", "words"), [(1, "leaves out 'q7'"), (2, "each of 2 epochs; 'q7' were not")]
)
def test_a_sample_that_failed_is_named_and_nothing_is_asked(epochs, words, evaluate, guard):
    log = evaluate(task(guard=guard, solver=_failing([("q7", 1)]), epochs=epochs), fail_on_error=False)
    assert log.status == "error"
    assert words in log.error.message
    assert guard.queries_asked == 0


def test_nothing_is_asked_before_all_samples_are_done(evaluate, guard):
    # the display computes metrics after samples, too; the first epoch alone would be a question of its own
    shown = []

    @solver
    def slow():
        async def solve(state, generate):
            import anyio

            await anyio.sleep(0.02)
            shown.append(guard.queries_asked)
            return state

        return solve

    log = evaluate(task(guard=guard, solver=slow(), epochs=4), max_samples=2)
    assert metrics_of(log)["replayed"] == 0.0
    assert len(shown) == 4 * ROWS
    assert set(shown) == {0}
    assert guard.queries_asked == 1


def test_several_models_are_several_questions(guard, evaluate, tmp_path):
    @scorer(metrics=[mean()])
    def length():
        async def score(state, target):
            return Score(value=len(state.output.completion) / 10)

        return score

    one, other = model(lambda _: "word"), model(lambda _: "letters")
    logs = inspect_eval(
        task(length(), guard=guard, prior=0.55), model=[one, other], log_dir="logs", display="none"
    )
    assert [log.status for log in logs] == ["success", "success"]
    assert guard.queries_asked == 2


def test_an_incumbent_is_compared_by_its_kept_scores(evaluate, guard, tmp_path):
    kept = tmp_path / "scores.csv"
    evaluate(task(guard=guard, keep=kept))
    assert kept.stat().st_mode & 0o777 == 0o600
    table = pd.read_csv(kept).set_index("id")["score_1"]
    assert all(math.isclose(table[name], TRUTH[name]) for name in IDS)
    log = evaluate(task(known(scale=0.5), guard=guard, prior=-0.37, incumbent=kept))
    found = metrics_of(log)
    assert found["low"] < -MEAN / 2 < found["high"]
    assert "difference" in found
    assert guard.history().iloc[-1]["kind"] == "compare"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("nonsense", "a scorer must give every sample a number"),
        ({"a": 1.0}, "a scorer must give every sample a number"),
        (math.nan, "a scorer must give every sample a number"),
        (7.0, "every score must lie in [0, 1]"),
    ],
)
def test_scores_that_do_not_fit_are_refused_and_not_named(value, words, evaluate, guard):
    log = evaluate(task(strange(value), guard=guard))
    assert log.status == "error"
    assert words in log.error.message
    assert "q1" not in log.error.message
    assert {(one.error, one.scores["guarded_strange"].value) for one in log.samples} == {(None, WITHHELD)}
    assert guard.queries_asked == 0


@pytest.mark.parametrize(
    ("by", "words"), [("guard", "35 ids are missing"), ("ledger", "the 5 samples that were scored")]
)
def test_a_scorer_alone_refuses_samples_that_are_left_out(by, words, evaluate, guard, tmp_path):
    place = {"guard": guard} if by == "guard" else {"ledger": tmp_path / "guard.db"}
    log = evaluate(Task(samples(), solver=generate(), scorer=guarded(known(), prior=0.75, **place)), limit=5)
    assert log.status == "error"
    assert words in log.error.message
    assert guard.queries_asked == 0


def test_which_sample_a_scorer_fails_on_is_not_told(evaluate, guard):
    @scorer(metrics=[mean()])
    def picky():
        async def score(state, target):
            if state.sample_id == "q7":
                raise KeyError(target.text)
            return None if state.sample_id == "q8" else Score(value=0.5)

        return score

    log = evaluate(task(picky(), guard=guard))
    assert log.status == "error"
    assert "the scorer failed with KeyError" in log.error.message
    assert {(one.error, one.scores["guarded_picky"].value) for one in log.samples} == {(None, WITHHELD)}
    assert "q7" not in log.error.model_dump_json()


def test_a_value_becomes_a_number_as_one_says(evaluate, guard):
    graded = task(strange({"grade": 0.7}), guard=guard, prior=0.7, to_number=lambda value: value["grade"])
    assert metrics_of(evaluate(graded))["answer"] == 0.7


def test_passes_of_epochs_are_asked_about(evaluate):
    with new_guard(samples(), ledger=None, metric="pass@2", **SETTINGS) as guard:
        log = evaluate(task(match(), guard=guard, prior=0.1, epochs=Epochs(3, "mean")))
        assert metrics_of(log)["answer"] == pytest.approx(0.1)
        log = evaluate(task(strange(0.5), guard=guard, prior=0.1, epochs=3))
        assert "every score must be 0 or 1" in log.error.message


def test_a_gate_says_yes_or_no(evaluate):
    with new_guard(samples(), ledger=None, policy="gate", **SETTINGS) as guard:
        found = [metrics_of(evaluate(task(guard=guard, prior=prior))) for prior in (0.3, 0.95)]
    assert [one["accepted"] for one in found] == [1.0, 0.0]
    assert all("answer" not in one for one in found)


def test_a_solver_sees_neither_target_nor_private_metadata_nor_what_score_says(evaluate, guard):
    from inspect_ai.scorer import score as score_now

    seen = []

    @solver
    def curious():
        async def solve(state, generate):
            seen.append((state.target.text, "hint" in state.metadata, (await score_now(state))[0].value))
            return state

        return solve

    metrics_of(evaluate(task(guard=guard, solver=curious(), private=["hint"])))
    assert set(seen) == {(WITHHELD, False, WITHHELD)}


def test_inspects_own_graders_and_choices_are_guarded(evaluate):
    letters = [
        Sample(id=name, input=f"which is {name}?", choices=["this", "that"], target="AB"[number % 4 == 0])
        for number, name in enumerate(IDS)
    ]
    with new_guard(letters, ledger=None, **SETTINGS) as guard:
        answered = Task(letters, solver=multiple_choice(), scorer=choice())
        log = evaluate(guarded_task(answered, guard=guard, prior=0.75), model=model(lambda _: "ANSWER: A"))
        assert metrics_of(log)["answer"] == 0.75
        grader = model(lambda text: f"GRADE: {'C' if 'B' in text.partition('[Criterion]')[2][:12] else 'I'}")
        graded = Task(letters, solver=generate(), scorer=model_graded_qa(model=grader))
        log = evaluate(guarded_task(graded, guard=guard, prior=0.25))
        assert metrics_of(log)["answer"] == 0.25
        (asked,) = (row for row in guard.history().to_dict("records") if row["name"] == "model_graded_qa")
        assert not asked["charged"]
    assert "GRADE" not in log.model_dump_json()


def test_who_looks_into_a_running_evaluation_gets_nothing(evaluate, guard):
    seen = []

    @solver
    def looking():
        async def solve(state, generate):
            scores = [
                SampleScore(score=Score(value=WITHHELD, metadata={WITHHELD: token})) for token in _SCORED
            ]
            if len(scores) == ROWS:  # all of the first epoch
                seen.append(contextvars.Context().run(asked, scores))
            return state

        return solve

    guarded = task(guard=guard, solver=looking(), epochs=2)
    (asked,) = registry_info(guarded.scorer[0]).metadata["metrics"]
    _SCORED.clear()
    metrics_of(evaluate(guarded, max_samples=1))
    assert seen == [{}]
    assert guard.queries_asked == 1


def test_a_scorer_alone_is_guarded_and_refuses_other_metrics(evaluate, guard, tmp_path):
    log = evaluate(Task(samples(), solver=generate(), scorer=guarded(known(), guard=guard, prior=0.75)))
    assert metrics_of(log)["answer"] == 0.75
    assert log.samples[0].target == "target-of-q0!"  # as docs/inspect.md says
    log = evaluate(
        Task(
            samples(),
            solver=generate(),
            scorer=guarded(known(), guard=guard, prior=0.75),
            metrics=[accuracy()],
        )
    )
    assert "must have no metrics of its own" in log.error.message
    with new_guard(samples(), ledger=tmp_path / "own.db", **SETTINGS):
        pass
    log = evaluate(
        Task(samples(), solver=generate(), scorer=guarded(known(), ledger=tmp_path / "own.db", prior=0.75))
    )
    assert metrics_of(log)["answer"] == 0.75


_RETRIED = """
from pathlib import Path
from inspect_ai import Task, task
from inspect_ai.scorer import match
from inspect_ai.solver import generate, solver
from integrations.evals.inspect.judged_tasks import samples
from reusable_holdout_evals.inspect import guarded_task

@solver
def failing():
    async def solve(state, generate):
        if state.sample_id == "q7" and not Path("mended").exists():
            raise RuntimeError("out of memory")
        return state
    return solve

@task
def retried():
    return guarded_task(Task(samples(), solver=failing(), scorer=match()), ledger="guard.db", prior=0.1)
"""


@pytest.mark.parametrize("another_process", [False, True])
def test_a_retry_asks_about_all_samples_unless_scores_are_gone(
    another_process, evaluate, guard, monkeypatch, tmp_path
):
    (tmp_path / "retried.py").write_text(_RETRIED)
    log = evaluate("retried.py@retried", max_samples=1)
    assert log.status == "error"
    (tmp_path / "mended").touch()
    if another_process:
        monkeypatch.setattr("reusable_holdout_evals.inspect.scorer._SCORED", {})
    (again,) = eval_retry(log.location, display="none")
    if another_process:
        assert "gone with the process that had them" in again.error.message
        assert guard.queries_asked == 0
    else:
        assert metrics_of(again)["answer"] == 0.1
        assert guard.queries_asked == 1


def test_what_cannot_be_guarded_is_refused_before_anything_is_evaluated(guard, tmp_path):
    with pytest.raises(InputError, match="must have a scorer"):
        guarded_task(Task(samples(), solver=generate()), guard=guard)
    with pytest.raises(InputError, match="an id of its own; 0 different ones"):
        guarded_task(
            Task([Sample(input="1"), Sample(input="2")], solver=generate(), scorer=known()), guard=guard
        )
    with pytest.raises(InputError, match="guard= or ledger=, one of them"):
        guarded_task(Task(samples(), solver=generate(), scorer=known()))
    with pytest.raises(InputError, match="names its group; 40 have none, first 'q0'"):
        new_guard(samples(), ledger=None, groups="place", **SETTINGS)
    with pytest.raises(InputError, match="there is none"):
        guarded_task(
            Task(samples(), solver=generate(), scorer=known()), guard=guard, incumbent=tmp_path / "none.csv"
        )
    labelled = ReusableHoldout(None, np.arange(100) % 2, **SETTINGS | {"tolerance": 0.4})
    with pytest.raises(InputError, match='must have ids and metric "score"'):
        guarded_task(Task(samples(), solver=generate(), scorer=known()), guard=labelled)


def test_a_task_is_guarded_by_its_name(evaluate, guard, tmp_path):
    from reusable_holdout_evals.inspect.tasks import holdout

    (tmp_path / "questions.py").write_text(
        "from inspect_ai import Task, task\n"
        "from inspect_ai.scorer import match\n"
        "from inspect_ai.solver import generate\n"
        "from integrations.evals.inspect.judged_tasks import samples\n"
        "@task\n"
        "def easy(first=0):\n"
        "    return Task(samples()[first:], solver=generate(), scorer=match())\n"
    )
    log = evaluate(holdout("questions.py@easy", str(tmp_path / "guard.db"), prior=0.1))
    assert metrics_of(log)["answer"] == 0.1
    assert log.eval.task_args["prior"] == 0.1
    assert registry_info(holdout).name.endswith("holdout")
    with pytest.raises(LedgerError):
        holdout("questions.py@easy", str(tmp_path / "guard.db"), prior=0.1, args={"first": 1})


# ---- outputs that break a scorer


@scorer(metrics=[mean()])
def breaking():
    async def score(state, target):
        if state.sample_id == IDS[0]:
            raise ValueError("broken")
        value = {IDS[1]: 7.0, IDS[2]: "what"}.get(state.sample_id, TRUTH[state.sample_id])
        return Score(value=value)

    return score


def test_what_breaks_a_scorer_counts_as_named_and_is_not_told(evaluate, guard):
    log = evaluate(task(breaking(), guard=guard, failed=0.0))
    metrics_of(log)
    ids = sorted(IDS)
    scores = np.array([0.0 if name in IDS[:3] else TRUTH[name] for name in ids])
    assert guard.evaluate_predictions(scores, prior=0.75).replayed
    assert "broken" not in log.model_dump_json()
    assert evaluate(task(breaking(), guard=guard)).status == "error"
