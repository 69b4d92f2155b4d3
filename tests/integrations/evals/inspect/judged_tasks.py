"""Tasks, a scripted model and talkative scorers; the script evaluates one of them in a process of its own."""

import logging
import os
import sqlite3
import sys
import warnings
from pathlib import Path

from inspect_ai import Task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.hooks import Hooks, hooks
from inspect_ai.log import transcript
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import Score, mean, scorer
from inspect_ai.solver import generate
from inspect_ai.util import sandbox, store

SETTINGS = {"queries": 10, "tolerance": 0.4, "seed": 0, "allow": {"vacuous"}}
ROWS = 40
IDS = [f"q{number}" for number in range(ROWS)]
SCORES = {name: 0.3 + (number + 1) / 97 for number, name in enumerate(IDS)}
_DIGITS = 14  # so many are no coincidence
_BETWEEN = 15  # scores, two copies of the buffer


def secrets_of(name):
    """Return the secrets of a sample, which only the scorer knows; no two samples share one."""
    texts = [f"{what}-{name}!" for what in ("target-of", "hint-of", "because-of", "graded")]
    return [texts[0], repr(SCORES[name])[:_DIGITS], *texts[1:]]


def samples():
    """Make questions with a target, a private hint and a repository."""
    secrets = {name: secrets_of(name) for name in IDS}
    metadata = {
        name: {"hint": secrets[name][2], "repository": f"r{place // 2}"} for place, name in enumerate(IDS)
    }
    made = [
        Sample(id=name, input=f"say {name}", target=secrets[name][0], metadata=metadata[name]) for name in IDS
    ]
    return MemoryDataset(made, name="questions")


def model(answer=lambda text: text):
    """Make a model that answers by a rule and counts its tokens; Inspect's mock would download a table for that."""

    def respond(messages, *_):
        content = answer(messages[-1].text)
        output = ModelOutput.from_content("mockllm/model", content)
        output.usage = ModelUsage(input_tokens=1, output_tokens=len(content), total_tokens=1 + len(content))
        return output

    return get_model("mockllm/model", custom_outputs=respond)


@scorer(metrics=[mean()])
def talkative(fails=False, runs=False):
    """Make a scorer that scores by a table, and writes its secrets wherever a scorer can."""

    async def score(state, target):
        name = str(state.sample_id)
        wanted, number, hint, because, graded = secrets_of(name)
        assert (target.text, state.target.text, state.metadata["hint"]) == (wanted, wanted, hint)
        await model(lambda _: graded).generate(f"grade {wanted} {because}")
        logging.getLogger("inspect_ai.grading").warning("%s scored %s", wanted, number)
        logging.getLogger("grading").error("%s scored %s", wanted, number)
        transcript().info({"score": number, "target": wanted})
        store().set("score", number)
        state.metadata["score"] = number
        state.messages.append(state.messages[-1].model_copy(update={"content": because}))
        if runs:
            await sandbox().exec(["echo", f"{wanted} {number}"])
        if fails:
            raise ValueError(f"{wanted} {number} {because}")
        return Score(value=SCORES[name], answer=graded, explanation=because, metadata={"hint": hint})

    return score


class Copies(Hooks):
    """A hook that copies the databases of running samples, which Inspect removes at the end."""

    def __init__(self):
        self.seen = 0

    async def on_sample_event(self, data):
        """Copy them after an error, and after some of the scores."""
        if data.event.event not in {"score", "error"}:
            return
        self.seen += 1
        if self.seen % _BETWEEN and data.event.event == "score":
            return
        for number, database in enumerate(Path("home").rglob("*.db")):
            to = Path("buffer") / f"{self.seen}-{number}.db"
            with sqlite3.connect(database) as source, sqlite3.connect(to) as copy:
                source.backup(copy)


def main():
    """Evaluate a task of the named kind; everything that Inspect writes stays in the working directory."""
    from inspect_ai import eval as evaluate
    from reusable_holdout_evals.inspect import guarded_task, new_guard

    kind = sys.argv[1]
    warnings.simplefilter("ignore")
    Path("buffer").mkdir()
    hooks(name="copies", description="keeps what is removed")(Copies)

    task = Task(
        samples(), solver=generate(), scorer=talkative(fails=kind == "failing", runs=True), sandbox="local"
    )
    if kind != "plain":
        new_guard(task, ledger="guard.db", **SETTINGS).close()
        task = guarded_task(task, ledger="guard.db", prior=0.5, private=["hint"])
    if kind == "misfit":  # out of the guard's bounds
        SCORES.update((name, value + 3) for name, value in SCORES.items())
    (log,) = evaluate(task, model=model(), log_dir="logs", log_realtime=True, epochs=2, log_level="trace")
    print("status", log.status)
    if log.results is not None:
        print("metrics", sorted(log.results.scores[0].metrics))


if __name__ == "__main__":
    os.environ["INSPECT_TRACEBACK_LOCALS"] = "1"
    main()
