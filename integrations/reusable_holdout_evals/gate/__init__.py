"""A gate for releases: is the new model better than the old one by what was named? Yes or no, and nothing else."""

from reusable_holdout_evals.gate.asking import NoWorse, Verdict, ask_gate, ask_gate_of_scores
from reusable_holdout_evals.gate.evaluations import Evaluations
from reusable_holdout_evals.gate.files import (
    Table,
    in_order_of,
    read_ids,
    read_labels,
    read_table,
)
from reusable_holdout_evals.gate.gate import Gate, make_gate, make_gate_of_scores, open_gate
from reusable_holdout_evals.gate.possible import Possible, what_is_possible

__all__ = [
    "Evaluations",
    "Gate",
    "NoWorse",
    "Possible",
    "Table",
    "Verdict",
    "ask_gate",
    "ask_gate_of_scores",
    "in_order_of",
    "make_gate",
    "make_gate_of_scores",
    "open_gate",
    "read_ids",
    "read_labels",
    "read_table",
    "what_is_possible",
]
