"""The durable record of what was released: integers and released values, nothing else."""

from typing import TYPE_CHECKING

from reusable_holdout.deferred import names_on_first_use

if TYPE_CHECKING:
    from reusable_holdout.ledger.contract import Ledger, Transaction
    from reusable_holdout.ledger.key_file import create_key_file, key_commitment, read_key_file
    from reusable_holdout.ledger.memory import MemoryLedger
    from reusable_holdout.ledger.records import Row, Tail, chain_problems, genesis, seal
    from reusable_holdout.ledger.storage import SqlLedger
else:  # of which storage loads SQLAlchemy
    __getattr__, __dir__ = names_on_first_use(
        __name__,
        {
            ".contract": ["Ledger", "Transaction"],
            ".key_file": ["create_key_file", "key_commitment", "read_key_file"],
            ".memory": ["MemoryLedger"],
            ".records": ["Row", "Tail", "chain_problems", "genesis", "seal"],
            ".storage": ["SqlLedger"],
        },
    )

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
