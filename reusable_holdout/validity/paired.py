"""Two questions of one set of rows, compared by what was told of each: how sure it is that one is truly better.

Nothing new is asked. What was told confines the holdout's difference; which rows can make one is public, for on rows
where two submissions predict the same neither gains.
"""

from __future__ import annotations

import math

from reusable_holdout.errors import InputError

__all__ = ["lead_nats", "paired_length"]

_ROUNDING = 1e-9  # nats, and rows: both sides of the comparison are sums of a few logarithms


def paired_length(*, queries: int, question: int, nats: float) -> float:
    """Description length of a pair of questions, at the later one: it names this, then the earlier one, then who leads.

    Parameters
    ----------
    queries : int
        Declared number K of questions.
    question : int
        Which of them the later one is, from 2.
    nats : float
        Of all outcomes that were told before the later one, all of them priced.

    Raises
    ------
    InputError
        If there is no earlier question.

    Notes
    -----
    ``ln K + nats + ln(i - 1) + ln 2`` for the i-th question. *Kraft.* Fix i: the histories before it weigh at most one
    together, at each of them there are i - 1 earlier questions, and either of the two may seem the better; and there
    are K indices. What is certified of a pair depends on the later one's outcome, too, but only through a number that
    the holdout's difference reaches; whether it reaches the least that suffices is one event, whatever is told.

    Examples
    --------
    >>> round(paired_length(queries=10_000, question=501, nats=20.0), 2)
    36.12
    """
    if not 2 <= question <= queries:
        raise InputError(
            f"the later question of a pair must be one of 2 to {queries}; got {question}; name the later one"
        )
    return math.log(queries) + nats + math.log(question - 1) + math.log(2.0)


def lead_nats(lead: float, differing: int) -> float:
    """Nats by which rows exclude that the one with the larger sum is, in truth, not better.

    Were it not, it would lead by as much with probability at most ``exp(-nats)``.

    Parameters
    ----------
    lead : float
        Sum over the rows of its losses' or scores' advantage, at least, each row's in [-1, 1].
    differing : int
        Rows that can have an advantage: on all others both predict the same.

    Returns
    -------
    float
        0 without a lead.

    Notes
    -----
    With m rows that differ and a lead of s, ``m kl((1 + s/m) / 2, 1/2)``: by Hoeffding's theorem 1 for independent
    terms, of whatever distributions, whose expectations sum to at most 0. Which rows differ is fixed by the features:
    given these, labels are independent draws.

    References
    ----------
    .. [1] Hoeffding (1963), Theorem 1, inequality (2.1).

    Examples
    --------
    >>> round(lead_nats(60, 400), 2), round(lead_nats(60, 4_000), 2), lead_nats(-3, 400)
    (4.52, 0.45, 0.0)
    """
    if differing <= 0:
        return 0.0
    share = min(max(lead - _ROUNDING, 0.0) / differing, 1.0)
    right, wrong = (1.0 + share) / 2.0, (1.0 - share) / 2.0
    entropy = right * math.log(2.0 * right) + (wrong * math.log(2.0 * wrong) if wrong > 0.0 else 0.0)
    return max(0.0, differing * entropy - _ROUNDING)
