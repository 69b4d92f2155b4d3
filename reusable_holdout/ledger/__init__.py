"""The durable record of what was released: integers and released values, nothing else."""

from reusable_holdout.deferred import names_on_first_use

# of which storage loads SQLAlchemy
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
