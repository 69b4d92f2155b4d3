"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.ledger.contract import Ledger as Ledger
from reusable_holdout.ledger.contract import Transaction as Transaction
from reusable_holdout.ledger.key_file import create_key_file as create_key_file
from reusable_holdout.ledger.key_file import key_commitment as key_commitment
from reusable_holdout.ledger.key_file import read_key_file as read_key_file
from reusable_holdout.ledger.memory import MemoryLedger as MemoryLedger
from reusable_holdout.ledger.records import Row as Row
from reusable_holdout.ledger.records import Tail as Tail
from reusable_holdout.ledger.records import chain_problems as chain_problems
from reusable_holdout.ledger.records import genesis as genesis
from reusable_holdout.ledger.records import seal as seal
from reusable_holdout.ledger.storage import SqlLedger as SqlLedger
