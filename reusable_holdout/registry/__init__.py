"""Which rows have a budget: the promise belongs to them, not to a file."""

from reusable_holdout.deferred import names_on_first_use

__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".sketch": ["Sketch", "Sketcher", "Words", "mixed", "overlap", "siphash"],
        ".store": ["VARIABLE", "Budget", "Registry", "registry_of_its_own"],
    },
)
