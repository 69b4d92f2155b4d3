"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.witness.head import FileWitness as FileWitness
from reusable_holdout.witness.head import Head as Head
from reusable_holdout.witness.head import Witness as Witness
from reusable_holdout.witness.head import alone as alone
from reusable_holdout.witness.places import witness_at as witness_at
