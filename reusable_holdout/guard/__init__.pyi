"""What type checkers see of this package; `__init__.py` says when it is imported."""

from reusable_holdout.guard.absent import check_is_guard as check_is_guard
from reusable_holdout.guard.answer import Answer as Answer
from reusable_holdout.guard.answer import Choice as Choice
from reusable_holdout.guard.answer import Guardrail as Guardrail
from reusable_holdout.guard.asking import has_most_rows as has_most_rows
from reusable_holdout.guard.batches import Asked as Asked
from reusable_holdout.guard.batches import MeasuredModel as MeasuredModel
from reusable_holdout.guard.chunks.parquet import ParquetRows as ParquetRows
from reusable_holdout.guard.endings import Rotation as Rotation
from reusable_holdout.guard.frozen import FrozenAnswer as FrozenAnswer
from reusable_holdout.guard.frozen import FrozenCertificate as FrozenCertificate
from reusable_holdout.guard.guard import ReusableHoldout as ReusableHoldout
from reusable_holdout.guard.kinds.ladder import ParameterFreeLadderWarning as ParameterFreeLadderWarning
from reusable_holdout.guard.lost_witness import begin_witness as begin_witness
from reusable_holdout.guard.models import predictions_of as predictions_of
from reusable_holdout.guard.overview import Price as Price
from reusable_holdout.guard.pricing import KeptLessWarning as KeptLessWarning
from reusable_holdout.guard.releases import Released as Released
from reusable_holdout.guard.releases import released as released
from reusable_holdout.guard.row_sets import CopiedRowsWarning as CopiedRowsWarning
from reusable_holdout.guard.verification import Verification as Verification
from reusable_holdout.guard.verification import verify as verify
from reusable_holdout.guard.whereabouts import ForWorkers as ForWorkers
from reusable_holdout.guard.whereabouts import Whereabouts as Whereabouts
