"""Witnesses: a separate record of how far a ledger has come, which detects that an older copy was restored."""

from reusable_holdout.witness.head import FileWitness, Head, Witness, locked
from reusable_holdout.witness.places import witness_at

__all__ = ["FileWitness", "Head", "Witness", "locked", "witness_at"]
