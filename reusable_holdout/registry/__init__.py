"""Which rows have a budget: the promise belongs to them, not to a file."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.registry.hashing import Words, mixed, siphash
    from reusable_holdout.registry.sketch import Sketch, Sketcher, overlap
    from reusable_holdout.registry.store import VARIABLE, Budget, Registry, registry_of_its_own
else:
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".hashing": ["Words", "mixed", "siphash"],
            ".sketch": ["Sketch", "Sketcher", "overlap"],
            ".store": ["VARIABLE", "Budget", "Registry", "registry_of_its_own"],
        },
    )

__all__ = [
    "VARIABLE",
    "Budget",
    "Registry",
    "Sketch",
    "Sketcher",
    "Words",
    "mixed",
    "overlap",
    "registry_of_its_own",
    "siphash",
]
