"""A gate for releases: it says if the new model is better than the old one by a named improvement, and nothing else."""

from reusable_holdout_evals.gate.gate import Gate, make_gate, open_gate
from reusable_holdout_evals.gate.possible import Possible, what_is_possible
from reusable_holdout_evals.gate.tables import (
    Table,
    classes_of,
    columns_of,
    in_order_of,
    read_ids,
    read_labels,
    read_table,
)
from reusable_holdout_evals.gate.verdict import NoWorse, Verdict, ask_gate

__all__ = [
    "Gate",
    "NoWorse",
    "Possible",
    "Table",
    "Verdict",
    "ask_gate",
    "classes_of",
    "columns_of",
    "in_order_of",
    "make_gate",
    "open_gate",
    "read_ids",
    "read_labels",
    "read_table",
    "what_is_possible",
]
