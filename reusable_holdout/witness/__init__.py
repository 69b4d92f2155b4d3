"""Witnesses: another owner's memory of how far a ledger had come, so that a restored copy is noticed."""

from reusable_holdout.deferred import names_on_first_use

__getattr__, __dir__ = names_on_first_use(
    __name__,
    {
        ".head": ["FileWitness", "Head", "Witness", "alone"],
        ".places": ["witness_at"],
    },
)
