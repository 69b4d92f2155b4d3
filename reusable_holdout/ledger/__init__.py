"""The durable record of what was released: integers and released values, nothing else."""

from reusable_holdout.ledger.contract import Ledger, Transaction
from reusable_holdout.ledger.key_file import create_key_file, key_commitment, read_key_file
from reusable_holdout.ledger.memory import MemoryLedger
from reusable_holdout.ledger.records import Row, Tail, chain_problems, genesis, seal

__all__ = [
    "Ledger",
    "MemoryLedger",
    "Row",
    "Tail",
    "Transaction",
    "chain_problems",
    "create_key_file",
    "genesis",
    "key_commitment",
    "read_key_file",
    "seal",
]
