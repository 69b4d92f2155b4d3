"""Attacks on holdouts: how far a score can be driven from the truth by asking alone.

Each attack takes anything that answers ``evaluate(predictions, prior=...)``: a guard, a remote one, or a
:class:`PlainHoldout`; and reports what was answered beside the truth that the caller knows.
"""

from attacks.boosting import boosting_attack
from attacks.flips import flip_attack
from attacks.freedman import freedman_attack
from attacks.guard_like import AnswerLike, GuardLike
from attacks.log_loss import log_loss_attack
from attacks.plain_holdout import PlainAnswer, PlainHoldout
from attacks.probing import budget_burning_attack, threshold_probing_attack
from attacks.result import AttackResult
from attacks.search import SearchProblem, hyperparameter_search
from attacks.truth import Truth, coin_truth

__all__ = [
    "AnswerLike",
    "AttackResult",
    "GuardLike",
    "PlainAnswer",
    "PlainHoldout",
    "SearchProblem",
    "Truth",
    "boosting_attack",
    "budget_burning_attack",
    "coin_truth",
    "flip_attack",
    "freedman_attack",
    "hyperparameter_search",
    "log_loss_attack",
    "threshold_probing_attack",
]
