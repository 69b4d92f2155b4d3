"""Witnesses: another owner's memory of how far a ledger had come, so that a restored copy is noticed."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use
from reusable_holdout.witness.alone import alone

if TYPE_CHECKING:
    from reusable_holdout.witness.file import FileWitness
    from reusable_holdout.witness.head import Head, Witness
    from reusable_holdout.witness.places import witness_at
else:
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".file": ["FileWitness"],
            ".head": ["Head", "Witness"],
            ".places": ["witness_at"],
        },
    )

__all__ = ["FileWitness", "Head", "Witness", "alone", "witness_at"]
