"""Which rows have a budget: the promise belongs to them, not to a file."""

from reusable_holdout.deferred import names_on_first_use

__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".forgetting": ["checked_reason", "forget", "forgotten_words", "is_gone", "refusal", "reminder"],
        ".memory": ["InMemory", "registry_of_its_own"],
        ".sketch": ["Sketch", "Sketcher", "Words", "mixed", "overlap", "siphash"],
        ".store": ["VARIABLE", "Budget", "Registry"],
    },
)
