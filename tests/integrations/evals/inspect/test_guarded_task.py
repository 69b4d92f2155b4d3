"""An evaluation of a guarded task: its metrics are the guard's answer, and any failure marks the log."""

import contextvars
import math

import numpy as np
import pandas as pd
import pytest
from cases import refuses
from made_guards import made_guard

pytest.importorskip("inspect_ai")

from inspect_ai import Epochs, Task, eval_retry
from inspect_ai.dataset import Sample
from inspect_ai.scorer import SampleScore, Score, accuracy, choice, match, mean, model_graded_qa, scorer
from inspect_ai.solver import generate, multiple_choice, solver
from inspect_ai.util import registry_info
from integrations.evals.inspect.judged_tasks import IDS, ROWS, SETTINGS, model, samples
from reusable_holdout_evals.inspect import guarded_task, new_guard
from reusable_holdout_evals.inspect.scorer import _SCORED, WITHHELD
from reusable_holdout_evals.inspect.tasks import holdout

from reusable_holdout import Plan, verify
from reusable_holdout.errors import InputError, LedgerError

OF_INSPECT = [  # it leaves streams open, and is behind its libraries
    pytest.mark.filterwarnings("ignore:Unclosed <MemoryObject:ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore:The 'initial' parameter:DeprecationWarning"),
    pytest.mark.long("integrations/reusable_holdout_evals", "reusable_holdout"),
]
pytestmark = OF_INSPECT
TRUTH = dict(zip(IDS, np.random.default_rng(1).beta(6, 2, ROWS), strict=True))
MEAN = float(np.mean(list(TRUTH.values())))


@scorer(metrics=[mean()])
def known(shift=0.0, scale=1.0):
    async def score(state, target):
        assert target.text == f"target-of-{state.sample_id}!"
        return Score(value=scale * TRUTH[state.sample_id] + shift * (state.epoch - 1))

    return score


@scorer(metrics=[mean()])
def strange(value, breaks=()):
    """Give a value; of some samples a value of their own, or fail on them."""

    async def score(state, target):
        found = dict(breaks).get(state.sample_id, value)
        if isinstance(found, type):
            raise found(target.text)
        return None if found is None else Score(value=TRUTH[state.sample_id] if found == "truth" else found)

    return score


@pytest.fixture
def guard(tmp_path):
    with new_guard(samples(), ledger=tmp_path / "guard.db", **SETTINGS) as guard:
        yield guard


def task(*scorers, prior=0.75, solver=None, epochs=None, of=samples, **settings):
    of_task = {} if epochs is None else {"epochs": epochs}
    plain = Task(of(), solver=solver or generate(), scorer=list(scorers) or [known()], **of_task)
    return guarded_task(plain, prior=prior, **settings)


def metrics_of(log, number=0):
    assert log.status == "success", log.error
    return {name: one.value for name, one in log.results.scores[number].metrics.items()}


def refused(log, words):
    """An evaluation that ended with an error asked nothing, and has no results."""
    assert log.status == "error"
    assert words in log.error.message
    assert log.results is None or not log.results.scores
    return log.error.message


def test_the_metrics_are_the_guards_answer_and_no_sample_has_a_score_or_a_target(evaluate, guard):
    log = evaluate(task(guard=guard))
    found, answer = metrics_of(log), guard.history().iloc[-1]
    told = {"answer": answer["value"], "low": answer["low"], "high": answer["high"], "prior": 0.75}
    assert found == told | {"charged": 0.0, "charges_left": guard.charges_left, "replayed": 0.0}
    assert found["low"] < MEAN < found["high"]
    assert log.results.scores[0].name == "guarded_known"
    scores = [one.scores["guarded_known"] for one in log.samples]
    assert {one.target for one in log.samples} == {one.value for one in scores} == {WITHHELD}
    assert all(one.explanation is None for one in scores)
    assert not log.reductions
    again = metrics_of(evaluate(task(guard=guard)))  # the same evaluation is replayed and free
    assert again == found | {"replayed": 1.0}
    assert guard.queries_asked == 1


def test_the_guard_is_asked_about_the_mean_of_the_epochs_by_id(evaluate, guard):
    evaluate(task(known(shift=-0.05), guard=guard, epochs=3))
    assert (guard.queries_asked, guard.history().iloc[-1]["name"]) == (1, "known")
    repeats = np.array([[TRUTH[name] - 0.05 * epoch for epoch in range(3)] for name in sorted(IDS)])
    assert guard.evaluate(repeats, prior=0.75).replayed


def test_each_scorer_is_a_question_with_its_prior(evaluate, guard):
    log = evaluate(task(known(), strange(1), guard=guard, prior={"known": 0.75, "strange": 0.9}))
    assert [metrics_of(log, number)["prior"] for number in (0, 1)] == [0.75, 0.9]
    assert list(guard.history()["name"]) == ["known", "strange"]


def test_a_ledger_is_opened_with_its_groups(evaluate, tmp_path):
    ledger = tmp_path / "grouped.db"
    with new_guard(samples(), ledger=ledger, groups="repository", **SETTINGS | {"tolerance": 0.6}):
        pass
    refuses(LedgerError, "", task, ledger=ledger)
    assert metrics_of(evaluate(task(ledger=ledger, groups="repository")))["low"] >= 0
    assert verify(ledger).sound


def test_a_halt_is_the_logs_error(evaluate):
    with new_guard(
        samples(), ledger=None, charges=1, **SETTINGS | {"tolerance": None, "queries": 1}
    ) as guard:
        metrics_of(evaluate(task(guard=guard)))
        refused(evaluate(task(known(scale=0.5), guard=guard)), "the guard has halted")


@pytest.mark.parametrize("options", [{"limit": 5}, {"sample_id": ["q1", "q3"]}])
def test_samples_that_are_left_out_are_named_and_nothing_is_asked(options, evaluate, guard):
    words = refused(evaluate(task(guard=guard), **options), f"a question needs all {ROWS} samples")
    assert "'q10'" in words
    assert guard.queries_asked == 0


@solver
def failing(which):
    async def solve(state, generate):
        if state.sample_id == which and state.epoch == 1:
            raise RuntimeError("out of memory")
        return state

    return solve


@pytest.mark.parametrize(
    ("epochs", "words"), [(1, "leaves out 'q7'"), (2, "each of 2 epochs; 'q7' were not")]
)
def test_a_sample_that_failed_is_named_and_nothing_is_asked(epochs, words, evaluate, guard):
    refused(evaluate(task(guard=guard, solver=failing("q7"), epochs=epochs), fail_on_error=False), words)
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

    assert metrics_of(evaluate(task(guard=guard, solver=slow(), epochs=4), max_samples=2))["replayed"] == 0.0
    assert (len(shown), set(shown), guard.queries_asked) == (4 * ROWS, {0}, 1)


def test_an_incumbent_is_compared_by_its_kept_scores(evaluate, guard, tmp_path):
    kept = tmp_path / "scores.csv"
    evaluate(task(guard=guard, keep=kept))
    assert kept.stat().st_mode & 0o777 == 0o600
    table = pd.read_csv(kept).set_index("id")["score_1"]
    assert all(math.isclose(table[name], TRUTH[name]) for name in IDS)
    found = metrics_of(evaluate(task(known(scale=0.5), guard=guard, prior=-0.37, incumbent=kept)))
    assert found["low"] < -MEAN / 2 < found["high"]
    assert "difference" in found
    assert guard.history().iloc[-1]["way"] == "compare"


@pytest.mark.parametrize(
    ("value", "breaks", "words"),
    [
        ("nonsense", {}, "a scorer must give every sample a number"),
        ({"a": 1.0}, {}, "a scorer must give every sample a number"),
        (math.nan, {}, "a scorer must give every sample a number"),
        (0.5, {"q8": None}, "a scorer must give every sample a number"),
        (7.0, {}, "every score must lie in [0, 1]"),
        (0.5, {"q7": KeyError, "q8": None}, "the scorer failed with KeyError"),
    ],
)
def test_scores_that_do_not_fit_are_refused_and_not_named(value, breaks, words, evaluate, guard):
    log = evaluate(task(strange(value, tuple(breaks.items())), guard=guard))
    refused(log, words)
    assert "q7" not in log.error.model_dump_json()
    assert {(one.error, one.scores["guarded_strange"].value) for one in log.samples} == {(None, WITHHELD)}
    assert guard.queries_asked == 0


def test_a_failure_of_a_scorer_counts_as_named_and_is_not_told(evaluate, guard):
    """The attack: outputs that break a scorer on some targets read them by the log's status."""
    breaks = ((IDS[0], ValueError), (IDS[1], 7.0), (IDS[2], "what"))
    log = evaluate(task(strange("truth", breaks), guard=guard, failed=0.0))
    metrics_of(log)
    scores = np.array([0.0 if name in IDS[:3] else TRUTH[name] for name in sorted(IDS)])
    assert guard.evaluate(scores, prior=0.75).replayed
    assert "ValueError" not in log.model_dump_json()
    assert evaluate(task(strange("truth", breaks), guard=guard)).status == "error"


def test_a_value_becomes_a_number_as_one_says(evaluate, guard):
    graded = task(strange({"grade": 0.7}), guard=guard, prior=0.7, to_number=lambda value: value["grade"])
    assert metrics_of(evaluate(graded))["answer"] == 0.7


def test_passes_of_epochs_are_asked_about_and_a_gate_says_yes_or_no(evaluate):
    with new_guard(samples(), ledger=None, metric="pass@2", **SETTINGS) as guard:
        log = evaluate(task(match(), guard=guard, prior=0.1, epochs=Epochs(3, "mean")))
        assert metrics_of(log)["answer"] == pytest.approx(0.1)
        refused(evaluate(task(strange(0.5), guard=guard, prior=0.1, epochs=3)), "every score must be 0 or 1")
    plan = Plan(gates=True, queries=SETTINGS["queries"], charges=2)  # one for the yes, one to go on
    with new_guard(samples(), ledger=None, plan=plan, seed=1, allow={"vacuous"}) as guard:
        found = [metrics_of(evaluate(task(guard=guard, prior=prior))) for prior in (0.3, 0.95)]
    assert [(one["accepted"], "answer" in one) for one in found] == [(1.0, False), (0.0, False)]


def test_a_solver_sees_neither_target_nor_private_metadata_nor_what_score_says(evaluate, guard):
    from inspect_ai.scorer import score as score_now

    seen = set()

    @solver
    def curious():
        async def solve(state, generate):
            seen.add((state.target.text, "hint" in state.metadata, (await score_now(state))[0].value))
            return state

        return solve

    metrics_of(evaluate(task(guard=guard, solver=curious(), private=["hint"])))
    assert seen == {(WITHHELD, False, WITHHELD)}


def test_inspects_own_graders_and_choices_are_guarded(evaluate):
    def letters():
        return [
            Sample(id=name, input=f"which is {name}?", choices=["this", "that"], target="AB"[number % 4 == 0])
            for number, name in enumerate(IDS)
        ]

    with new_guard(letters(), ledger=None, **SETTINGS) as guard:
        common = {"guard": guard, "of": letters}
        log = evaluate(task(choice(), solver=multiple_choice(), **common), model=model(lambda _: "ANSWER: A"))
        assert metrics_of(log)["answer"] == 0.75
        grader = model(lambda text: f"GRADE: {'C' if 'B' in text.partition('[Criterion]')[2][:12] else 'I'}")
        log = evaluate(task(model_graded_qa(model=grader), prior=0.25, **common))
        assert metrics_of(log)["answer"] == 0.25
        assert not guard.history().set_index("name")["charged"]["model_graded_qa"]
    assert "GRADE" not in log.model_dump_json()


def test_a_look_into_a_running_evaluation_tells_nothing(evaluate, guard):
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

    looked = task(guard=guard, solver=looking(), epochs=2)
    (asked,) = registry_info(looked.scorer[0]).metadata["metrics"]
    _SCORED.clear()
    metrics_of(evaluate(looked, max_samples=1))
    assert (seen, guard.queries_asked) == ([{}], 1)


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

@task
def easy(first=0):
    return Task(samples()[first:], solver=generate(), scorer=match())
"""


@pytest.mark.parametrize("another_process", [False, True])
def test_a_retry_asks_about_all_samples_unless_scores_are_gone(
    another_process, evaluate, guard, monkeypatch, tmp_path
):
    (tmp_path / "tasks.py").write_text(_RETRIED)
    log = evaluate("tasks.py@retried", max_samples=1)
    assert log.status == "error"
    (tmp_path / "mended").touch()
    if another_process:
        monkeypatch.setattr("reusable_holdout_evals.inspect.scorer._SCORED", {})
    (again,) = eval_retry(log.location, display="none")
    if another_process:
        refused(again, "lost when their process ends")
    else:
        assert metrics_of(again)["answer"] == 0.1
    assert guard.queries_asked == (not another_process)


def test_a_task_is_guarded_by_its_name(evaluate, guard, tmp_path):
    (tmp_path / "tasks.py").write_text(_RETRIED)
    ledger = str(tmp_path / "guard.db")
    log = evaluate(holdout("tasks.py@easy", ledger, prior=0.1))
    assert metrics_of(log)["answer"] == 0.1
    assert log.eval.task_args["prior"] == 0.1
    assert registry_info(holdout).name.endswith("holdout")  # after the package, where it is installed
    refuses(LedgerError, "", holdout, "tasks.py@easy", ledger, prior=0.1, args={"first": 1})


def test_a_task_that_cannot_be_guarded_is_refused_before_anything_is_evaluated(guard, evaluate, tmp_path):
    unnamed = [Sample(input="1"), Sample(input="2")]
    labelled = made_guard(None, np.arange(100) % 2, **SETTINGS)
    for words, refuse in {
        "must have a scorer": lambda: guarded_task(Task(samples(), solver=generate()), guard=guard),
        "an id of its own; there are 0 different ids": lambda: task(guard=guard, of=lambda: unnamed),
        "guard= or ledger=, one of them": task,
        "names its group; 40 have none, first 'q0'": lambda: new_guard(
            samples(), ledger=None, groups="place"
        ),
        "there is none": lambda: task(guard=guard, incumbent=tmp_path / "none.csv"),
        'must have ids and metric "score"': lambda: task(guard=labelled),
    }.items():
        refuses(InputError, words, refuse)
    plain = task(guard=guard)
    plain.metrics = [accuracy()]  # somebody adds them later
    refused(evaluate(plain), "must have no metrics of its own")
    assert guard.queries_asked == 0
