"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.registry.forgetting import checked_reason as checked_reason
from reusable_holdout.registry.forgetting import forget as forget
from reusable_holdout.registry.forgetting import forgotten_words as forgotten_words
from reusable_holdout.registry.forgetting import is_gone as is_gone
from reusable_holdout.registry.forgetting import refusal as refusal
from reusable_holdout.registry.forgetting import reminder as reminder
from reusable_holdout.registry.memory import InMemory as InMemory
from reusable_holdout.registry.memory import registry_of_its_own as registry_of_its_own
from reusable_holdout.registry.sketch import Sketch as Sketch
from reusable_holdout.registry.sketch import Sketcher as Sketcher
from reusable_holdout.registry.sketch import Words as Words
from reusable_holdout.registry.sketch import mixed as mixed
from reusable_holdout.registry.sketch import overlap as overlap
from reusable_holdout.registry.sketch import siphash as siphash
from reusable_holdout.registry.store import VARIABLE as VARIABLE
from reusable_holdout.registry.store import Budget as Budget
from reusable_holdout.registry.store import Registry as Registry
