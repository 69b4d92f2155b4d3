"""The registry of rows that have a budget: a budget belongs to rows, not to a file."""

from reusable_holdout.registry.forgetting import (
    checked_reason,
    forget,
    forgotten_words,
    is_gone,
    refusal,
    reminder,
)
from reusable_holdout.registry.memory import InMemory, registry_of_its_own
from reusable_holdout.registry.sketch import Sketch, Sketcher, Words, mixed, overlap, siphash
from reusable_holdout.registry.store import VARIABLE, Budget, Registry

__all__ = [
    "VARIABLE",
    "Budget",
    "InMemory",
    "Registry",
    "Sketch",
    "Sketcher",
    "Words",
    "checked_reason",
    "forget",
    "forgotten_words",
    "is_gone",
    "mixed",
    "overlap",
    "refusal",
    "registry_of_its_own",
    "reminder",
    "siphash",
]
