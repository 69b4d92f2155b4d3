"""Witnesses: another owner's memory of how far a ledger had come, so that a restored copy is noticed."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.witness.file import FileWitness
    from reusable_holdout.witness.head import Head, Witness, alone
    from reusable_holdout.witness.places import witness_at
else:
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".file": ["FileWitness"],
            ".head": ["Head", "Witness", "alone"],
            ".places": ["witness_at"],
        },
    )

__all__ = ["FileWitness", "Head", "Witness", "alone", "witness_at"]
