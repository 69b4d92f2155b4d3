"""Witnesses: another owner's memory of how far a ledger had come, so that a restored copy is noticed."""

from reusable_holdout.witness.head import FileWitness, Head, Witness, alone
from reusable_holdout.witness.places import witness_at

__all__ = [
    "FileWitness",
    "Head",
    "Witness",
    "alone",
    "witness_at",
]
