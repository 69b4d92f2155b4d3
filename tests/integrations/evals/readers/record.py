"""Recorder of the files that evaluation tools write. Run it where inspect-ai and lm_eval are installed.

No test needs these tools: they read ``recorded/``, which Inspect 0.3.285 and lm_eval 0.4.13 wrote. Record anew when a
tool changes its files, and keep the old files under another name.

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


def inspect_tasks():
    """Tasks of two epochs: of one scorer, of three with a failed and an unscored sample, and one that breaks."""
    from inspect_ai import Epochs, Task
    from inspect_ai.dataset import Sample
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

    dataset = [
        Sample(id=f"q{k}", input=f"what is {k}?", target=str(k), metadata={"repo": f"r{k // 2}"})
        for k in range(SAMPLES)
    ]
    several = [match(), style(), judge()]
    for name, failing, scorers in (
        ("plain", False, match()),
        ("several", True, several),
        ("broken", True, match()),
    ):
        yield Task(dataset=dataset, solver=answers(failing), scorer=scorers, name=name, epochs=Epochs(2))


def record_inspect() -> None:
    """Write the logs without tracebacks and events, which name the folders of the recorder."""
    from inspect_ai import eval as run
    from inspect_ai.log import EvalError, write_eval_log

    def bare(error):
        return error and EvalError(message=error.message, traceback="", traceback_ansi="")

    for task in inspect_tasks():
        for log_format in ("eval",) if task.name == "broken" else ("eval", "json"):
            fails = {"plain": None, "several": False, "broken": True}[task.name]
            with tempfile.TemporaryDirectory() as folder:
                (log,) = run(task, model="mockllm/model", log_dir=folder, display="none", fail_on_error=fails)
                for sample in log.samples:
                    sample.events, sample.error = [], bare(sample.error)
                log.error = bare(log.error)
                write_eval_log(log, str(FOLDER / f"{task.name}.{log_format}"), format=log_format)


def harness_tasks():
    """Configurations of two tasks: one with two metrics, one of three responses with two filters."""
    import datasets

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
    yield common | {
        "task": "choice",
        "output_type": "multiple_choice",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }
    patterns = {"strict-match": r"#### (\-?[0-9]+)", "flexible-extract": r"(\d+)"}
    steps = {
        name: [{"function": "regex", "regex_pattern": one}, {"function": "take_first"}]
        for name, one in patterns.items()
    }
    yield common | {
        "task": "sums",
        "output_type": "generate_until",
        "doc_to_target": "sum",
        "repeats": 3,
        "generation_kwargs": {"until": ["\n"], "do_sample": True},
        "metric_list": [{"metric": "exact_match"}],
        "filter_list": [{"name": name, "filter": one} for name, one in steps.items()],
    }


def record_lm_eval() -> None:
    """Write the samples of both tasks."""
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

    shutil.rmtree(FOLDER / "lm_eval", ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        tracker = EvaluationTracker(output_path=folder)
        tracker.general_config_tracker.model_name_sanitized = "lm_eval"
        for config in harness_tasks():
            task = ConfigurableTask(config=config)
            found = simple_evaluate(model=Model(), tasks=[task], log_samples=True, bootstrap_iters=0)
            tracker.save_results_aggregated(results={"results": found["results"]}, samples=found["samples"])
            for name, samples in found["samples"].items():
                tracker.save_results_samples(name, samples)
        shutil.copytree(
            Path(folder) / "lm_eval", FOLDER / "lm_eval", ignore=shutil.ignore_patterns("results*")
        )


def main() -> None:
    """Record the files of the tools that are named, by default of both."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    FOLDER.mkdir(exist_ok=True)
    recorders = {"inspect": record_inspect, "lm_eval": record_lm_eval}
    for name in sys.argv[1:] or recorders:
        recorders[name]()


if __name__ == "__main__":
    main()
