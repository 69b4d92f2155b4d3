"""The durable record of released answers: integers and released values, nothing else."""

from reusable_holdout.ledger.key_file import create_key_file, key_commitment, read_key_file
from reusable_holdout.ledger.memory import MemoryLedger
from reusable_holdout.ledger.records import Row, Tail, chain_problems, genesis, seal
from reusable_holdout.ledger.storage import Ledger, SqlLedger, Transaction

__all__ = [
    "Ledger",
    "MemoryLedger",
    "Row",
    "SqlLedger",
    "Tail",
    "Transaction",
    "chain_problems",
    "create_key_file",
    "genesis",
    "key_commitment",
    "read_key_file",
    "seal",
]
