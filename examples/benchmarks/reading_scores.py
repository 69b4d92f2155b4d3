"""Seconds to read evaluation files and to ask about them: 10,000 samples of 5 repeats, of Inspect and lm_eval.

Writes files as these tools do, two of each (an Inspect log has all its 50,000 samples, and summaries of 1,000 bytes and
more), then reads both, and compares them by a guard with a ledger. A fresh interpreter does it each time, as a gate in
CI would. What reading one evaluation and asking take is shown, on the clock and in processor seconds (those alone on a
machine that others use as well), and beside it the whole process: imports, two evaluations, a new guard, the answer.
Run with ``python examples/benchmarks/reading_scores.py``; ``--json`` for programs, ``--quick`` for a tenth.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("REUSABLE_HOLDOUT_REGISTRY", "off")  # an example is not among your budgets

REPEATS = 5
GOAL = 2.0

_ASKED = """
import json, sys, time
begin = time.perf_counter()
from reusable_holdout import ReusableHoldout
from reusable_holdout_evals import {reader} as read
new, old = json.loads(sys.argv[1])
imported, cpu = time.perf_counter(), time.process_time()
tables = [read(files{options}) for files in (new, old)]
done, read_cpu = time.perf_counter(), time.process_time()
made = ReusableHoldout(
    None, tables[1].ids, metric="score", queries=10, tolerance=0.1, ledger=sys.argv[2], allow={{"no witness"}}, seed=0
)
begun, ask_cpu = time.perf_counter(), time.process_time()
answer = made.compare(*tables, prior=0.05)
asked, end_cpu = time.perf_counter(), time.process_time()
processor = (read_cpu - cpu) / 2 + end_cpu - ask_cpu
print(json.dumps([(done - imported) / 2, asked - begun, processor, asked - begin]))
"""


class Seconds(NamedTuple):
    """Medians.

    Attributes
    ----------
    what : str
    megabytes : float
        Of one evaluation's files.
    read : float
        One evaluation.
    asked : float
        One comparison of two, with its ledger.
    both, processor : float
        `read` of one and `asked`, on the clock and in processor seconds.
    process : float
        Imports, two evaluations read, a guard made, and asked.
    goal : float
        For `both`.
    """

    what: str
    megabytes: float
    read: float
    asked: float
    both: float
    processor: float
    process: float
    goal: float


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the samples, once")
    options = parser.parse_args()
    samples, rounds = (1_000, 1) if options.quick else (10_000, 5)
    with tempfile.TemporaryDirectory() as folder:
        written = {
            ("an .eval log of Inspect", "read_inspect", ""): write_inspect(Path(folder), samples),
            ("5 files of lm-evaluation-harness", "read_lm_eval", ', metric="acc"'): write_lm_eval(
                Path(folder), samples
            ),
        }
        found = [measured(*how, files, rounds=rounds, folder=Path(folder)) for how, files in written.items()]
    if options.json:
        print(json.dumps([one._asdict() for one in found], indent=2))
        return
    print(f"{samples:,} samples x {REPEATS} repeats, medians of {rounds}\n")
    print(f"{'':34}{'MB':>7}{'read':>9}{'asked':>9}{'both':>9}{'processor':>11}{'goal':>7}{'process':>10}")
    for one in found:
        print(
            f"{one.what:34}{one.megabytes:7.1f}{one.read:8.2f}s{one.asked:8.2f}s{one.both:8.2f}s"
            f"{one.processor:10.2f}s{one.goal:6.1f}s{one.process:9.2f}s"
        )


def measured(
    what: str, reader: str, options: str, files: list[list[str]], *, rounds: int, folder: Path
) -> Seconds:
    """Time fresh processes."""
    program = _ASKED.format(reader=reader, options=options)
    told = []
    for place in range(rounds):
        ledger = str(folder / f"{reader}-{place}.db")
        command = [sys.executable, "-c", program, json.dumps(files), ledger]
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own
        told.append(json.loads(done.stdout))
    read, asked, processor, process = (statistics.median(column) for column in zip(*told, strict=True))
    size = sum(Path(file).stat().st_size for file in files[0]) / 1e6
    return Seconds(what, size, read, asked, read + asked, processor, process, GOAL)


# ---- files as the tools write them


def _text(draw: random.Random, words: int) -> str:
    return " ".join(f"{draw.getrandbits(32):x}" for _ in range(words))


def write_inspect(folder: Path, samples: int) -> list[list[str]]:
    """Two logs: members, keys and sizes as of Inspect 0.3, packed by deflate."""
    return [
        [str(_log(folder / f"{name}.eval", samples, share))] for name, share in (("new", 0.7), ("old", 0.65))
    ]


def _log(path: Path, samples: int, share: float) -> Path:
    draw = random.Random(path.name)  # noqa: S311 - made-up scores
    header = {
        "version": 2,
        "status": "success",
        "eval": {"task": "made-up", "config": {"epochs": REPEATS, "epochs_reducer": ["mean"]}},
        "results": {"scores": [{"name": "match", "scorer": "match", "metrics": {}}]},
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        summaries = []
        for epoch in range(1, REPEATS + 1):
            for sample in range(samples):
                summary = _summary(draw, sample, epoch, share)
                archive.writestr(
                    f"samples/q{sample}_epoch_{epoch}.json", json.dumps(summary | {"messages": []})
                )
                summaries.append(summary)
        archive.writestr("summaries.json", json.dumps(summaries))
        archive.writestr("header.json", json.dumps(header))
    return path


def _summary(draw: random.Random, sample: int, epoch: int, share: float) -> dict[str, Any]:
    return {
        "id": f"q{sample}",
        "epoch": epoch,
        "input": _text(draw, 50),
        "target": "A",
        "metadata": {"subject": f"s{sample % 57}", "difficulty": "hard"},
        "scores": {
            "match": {
                "value": "C" if draw.random() < share else "I",
                "answer": "A",
                "explanation": _text(draw, 30),
                "history": [],
            }
        },
        "model_usage": {"mockllm/model": {"input_tokens": 100, "output_tokens": 100, "total_tokens": 200}},
        "started_at": "2026-01-01T00:00:00+00:00",
        "completed_at": "2026-01-01T00:00:01+00:00",
        "total_time": 1.0,
        "working_time": 1.0,
        "uuid": f"{draw.getrandbits(128):032x}",
        "retries": 0,
        "completed": True,
        "message_count": 2,
    }


def write_lm_eval(folder: Path, samples: int) -> list[list[str]]:
    """Two times five files, one for each repeat: keys and sizes as of lm_eval 0.4."""
    return [
        [str(_samples(folder / name, repeat, samples, share)) for repeat in range(REPEATS)]
        for name, share in (("new", 0.7), ("old", 0.65))
    ]


def _samples(folder: Path, repeat: int, samples: int, share: float) -> Path:
    folder.mkdir(exist_ok=True)
    draw = random.Random(f"{folder.name} {repeat}")  # noqa: S311 - made-up scores
    path = folder / f"samples_made-up_2026-01-01T00-00-0{repeat}.000000.jsonl"
    with path.open("w") as file:
        for sample in range(samples):
            text = _text(draw, 30)
            line = {
                "doc_id": sample,
                "doc": {"question": text, "choices": ["A", "B", "C", "D"], "answer": 0},
                "target": "0",
                "arguments": {f"gen_args_{k}": {"arg_0": text, "arg_1": f" {k}"} for k in range(4)},
                "resps": [[[str(-draw.random()), "False"]] for _ in range(4)],
                "filtered_resps": [[str(-draw.random()), "False"] for _ in range(4)],
                "filter": "none",
                "metrics": ["acc", "acc_norm"],
                "doc_hash": f"{draw.getrandbits(256):064x}",
                "prompt_hash": f"{draw.getrandbits(256):064x}",
                "target_hash": f"{draw.getrandbits(256):064x}",
                "acc": float(draw.random() < share),
                "acc_norm": float(draw.random() < share),
            }
            file.write(json.dumps(line) + "\n")
    return path


if __name__ == "__main__":
    main()
