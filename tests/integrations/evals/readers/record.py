"""Record what evaluation tools write. Run this file where inspect-ai and lm_eval are installed.

No test needs these tools: they read what is in ``recorded/``, which Inspect 0.3.285 and lm_eval 0.4.13 wrote. Record
anew when one of them changes what it writes, and keep the old files under another name.

No model is called: answers follow from a sample's place, so that tests can name them.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "recorded"
SAMPLES = 6


def record_inspect() -> None:  # noqa: C901 - a task's parts are functions
    """Logs of two epochs: of one scorer, of three with a failed and an unscored sample, and of a run that broke."""
    from inspect_ai import Epochs, Task
    from inspect_ai import eval as run
    from inspect_ai.dataset import Sample
    from inspect_ai.log import EvalError, write_eval_log
    from inspect_ai.model import ModelOutput
    from inspect_ai.scorer import Score, match, mean, scorer, stderr
    from inspect_ai.solver import solver

    @scorer(metrics={"clarity": [mean()], "brevity": [mean()]})
    def style():
        async def score(state, target):
            return Score(value={"clarity": int(state.sample_id[1:]) / 8, "brevity": state.epoch == 1})

        return score

    @scorer(metrics=[mean(), stderr(cluster="repo")])
    def judge():
        async def score(state, target):
            if state.sample_id == "q3":
                return Score.unscored(reason="grader_failed")
            return Score(value="CPIN"[int(state.sample_id[1:]) % 4])

        return score

    @solver
    def answers(failing=False):
        async def solve(state, generate):
            if failing and state.sample_id == "q5" and state.epoch == 2:
                raise ValueError("broken sandbox")
            answer = (int(state.sample_id[1:]) + state.epoch) // 2
            state.output = ModelOutput.from_content("mockllm/model", str(answer))
            return state

        return solve

    def without_places(log):
        """Without tracebacks and events, which name the folders of whoever records."""
        for sample in log.samples:
            sample.events = []
            if sample.error is not None:
                sample.error = EvalError(message=sample.error.message, traceback="", traceback_ansi="")
        if log.error is not None:
            log.error = EvalError(message=log.error.message, traceback="", traceback_ansi="")
        return log

    def logged(name, solve, scorers, log_format, *, fail_on_error):
        dataset = [
            Sample(id=f"q{k}", input=f"what is {k}?", target=str(k), metadata={"repo": f"r{k // 2}"})
            for k in range(SAMPLES)
        ]
        task = Task(dataset=dataset, solver=solve, scorer=scorers, name=name, epochs=Epochs(2))
        with tempfile.TemporaryDirectory() as folder:
            (log,) = run(
                task,
                model="mockllm/model",
                log_dir=folder,
                log_format=log_format,
                display="none",
                fail_on_error=fail_on_error,
            )
            write_eval_log(without_places(log), str(FOLDER / f"{name}.{log_format}"), format=log_format)

    for log_format in ("eval", "json"):
        logged("plain", answers(), match(), log_format, fail_on_error=None)
        logged("several", answers(failing=True), [match(), style(), judge()], log_format, fail_on_error=False)
    logged("broken", answers(failing=True), match(), "eval", fail_on_error=True)


def record_lm_eval() -> None:
    """Samples of two tasks: one with two metrics, one of three responses with two filters."""
    import datasets
    from lm_eval import simple_evaluate
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask
    from lm_eval.loggers import EvaluationTracker

    class Model(LM):
        def loglikelihood(self, requests, disable_tqdm=False):
            return [(-float(place % 3), False) for place, _ in enumerate(requests)]

        def generate_until(self, requests, disable_tqdm=False):
            return [f"#### {2 * (k // 3)}" if k % 6 else "it is 0, or 1" for k, _ in enumerate(requests)]

        def loglikelihood_rolling(self, requests, disable_tqdm=False):
            raise NotImplementedError

    def rows(**_):
        listed = [
            {
                "question": f"{k} plus {k}?",
                "choices": ["two", "four"],
                "answer": k % 2,
                "sum": str(2 * k),
                "passage": f"p{k // 2}",
            }
            for k in range(SAMPLES)
        ]
        return {"test": datasets.Dataset.from_list(listed)}

    common = {"custom_dataset": rows, "test_split": "test", "doc_to_text": "{{question}}"}
    choice = common | {
        "task": "choice",
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }
    patterns = {"strict-match": r"#### (\-?[0-9]+)", "flexible-extract": r"(\d+)"}
    sums = common | {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_target": "sum",
        "repeats": 3,
        "generation_kwargs": {"until": ["\n"], "do_sample": True},
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [
            {
                "name": name,
                "filter": [{"function": "regex", "regex_pattern": pattern}, {"function": "take_first"}],
            }
            for name, pattern in patterns.items()
        ],
    }
    shutil.rmtree(FOLDER / "lm_eval", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tracker = EvaluationTracker(output_path=folder)
        tracker.general_config_tracker.model_name_sanitized = "lm_eval"
        for config in (choice, sums):
            found = simple_evaluate(
                model=Model(), tasks=[ConfigurableTask(config=config)], log_samples=True, bootstrap_iters=0
            )
            tracker.save_results_aggregated(results={"results": found["results"]}, samples=found["samples"])
            for task, samples in found["samples"].items():
                tracker.save_results_samples(task, samples)
        shutil.copytree(
            Path(folder) / "lm_eval", FOLDER / "lm_eval", ignore=shutil.ignore_patterns("results*")
        )


def main() -> None:
    """Record what the installed tools write, or those that are named."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    FOLDER.mkdir(exist_ok=True)
    recorders = {"inspect": record_inspect, "lm_eval": record_lm_eval}
    for name in sys.argv[1:] or recorders:
        recorders[name]()


if __name__ == "__main__":
    main()
