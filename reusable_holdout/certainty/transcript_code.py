"""The transcript code: the description length of every question, in nats, and the reach of the noise.

The analyst's i-th question is a function of the charged answers before it, because an agreement returns the prior that
she already had. So the questions she could ever ask form a tree. Her strategy and the noise fix this tree before the
holdout is drawn. A union bound over its nodes holds for any node weights that sum to at most one: with probability at
least ``1 - beta``, the population value of every node, of weight ``w``, lies in its confidence set of level
``beta * w``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from reusable_holdout.certainty.theory import THEORY, Theory
from reusable_holdout.errors import InputError
from reusable_holdout.noise.calibration import Calibration, GuardMechanism


@dataclass(frozen=True)
class TranscriptCode:
    """Description length of the history that leads to a question, or to the final.

    The weights ``exp(-length)`` of all questions and finals an analyst could ever ask sum to at most one, whatever her
    strategy, as long as each outcome that depends on the holdout is priced by public weights that sum to at most one.

    Parameters
    ----------
    queries : int or None
        Declared number K of questions, at least 1: each check, comparison, reveal and candidate of a choice is one.
        ``None``: no number was declared, and a question's index and positions cost ``ln(i (i + 1)) + ln C(i - 1, j)``.
    charges : int or None
        Charges C after which no question is answered, at least 1. ``None``: no number was declared, and j charges
        cost ``(j + 1) ln 2``.
    final_share : float
        Share phi of the failure probability that is kept for the final, in [0, 1]; the questions have the rest.
    theory : Theory
        Constants; its `early_share` is the 0.1 in w_S below.
    first_share : float
        Value of p_0, in (0, 1), in place of 1/2; the other p_j then share the rest equally. 0 means 1/2.

    Notes
    -----
    For a question after j charges, and for a final after j charges (both counted before the batch in which they are
    asked), when the outcomes so far cost ``nats``::

        question   ln C(K, j + 1) + ln(1/p_j) + nats + ln(1/(1 - phi))  p_0 = 1/2, p_j = 1/(2(C - 1)),  j = 1 .. C - 1
        final      ln(1/w_S)      + ln(1/q_j) + nats + ln(1/phi)        q_0 = .9, q_j = c / (j (j + 1)), j = 1 .. C
                   w_S = 0.9 / C(K, j) + 0.1 / ((s + 1) C(s, j)), s the index of the last charge; w_S = 1 at j = 0

    with c such that the q_j sum to one. A final is most often asked after no charge, so this case has most of the
    weight: its interval is then hardly wider than with a single use of the rows. In editions before the fourth
    q_0 = 1/2, q_j = 1/(2C). If phi is more than 0.9, q_0 is phi. Each answer of a final also pays for its own weight.

    *Kraft.* Questions have a total weight of ``1 - phi``, finals of ``phi``. Fix j. A node of the questions is an index
    i and the set S of the charges' positions below i: together a subset of j + 1 of the K questions, whose last is i,
    so there are at most C(K, j + 1) such pairs. Given a pair, walk the strategy: at an index in S a check is charged
    with some outcome, at any other a check agrees, and a reveal or choice takes some outcome; the weights of all
    outcomes at one index sum to at most one, so by induction the nodes of (i, S) weigh at most one together, and all
    nodes with this j at most ``p_j``. No question follows the last charge, so the questions' p_j keep no share for it
    (at C = 1, p_0 = 1); the finals' q_j do. The start of a batch does not appear: an analyst can let it depend on the
    answers, and ``C(start, j)`` would then overfill the sum.

    A final follows at most C charges. Given S and the outcomes, the strategy itself fixes when the final comes, so the
    place of the last question costs nothing. So the sets S of j places may have any weights that sum to at most one.
    w_S mixes two weights. One is even. The other has ``j/(s (s + 1))`` for the last place s, which telescopes to one,
    and is even on the ``C(s - 1, j - 1)`` sets whose last place is s, so that each has ``1/((s + 1) C(s, j))``: a later
    s costs more. A question that takes several indices is charged at the last of them.

    References
    ----------
    .. [1] Dwork, Feldman, Hardt, Pitassi, Reingold, Roth (2015), "Generalization in Adaptive Data Analysis and Holdout
       Reuse", section 3 (description length).

    Examples
    --------
    >>> code = TranscriptCode(queries=1000, charges=5)
    >>> round(code.length(query=1000, charges=0), 3) == round(math.log(1000) + math.log(2) - math.log(0.25), 3)
    True
    >>> round(code.final_length(charges=0), 3) == round(-math.log(0.9) - math.log(0.75), 3)
    True
    """

    queries: int | None = None
    charges: int | None = None
    final_share: float = THEORY.final_share
    theory: Theory = THEORY
    first_share: float = 0.0

    def __post_init__(self) -> None:
        for name, number in (("queries", self.queries), ("charges", self.charges)):
            if number is not None and number < 1:
                raise InputError(
                    f"{name} must be at least 1 or None, got {number}; declare how many there will be at most"
                )

    def length(self, *, query: int, charges: int, nats: float = 0.0) -> float:
        """Return the nats of the ``query``-th question (from 1) after ``charges`` charges; all outcomes cost ``nats``.

        More charges than declared cost the same as the declared number.
        """
        self._check(query, charges)
        if self.queries is None:
            place = math.log(query) + math.log(query + 1) + _log_choose(query - 1, charges)
        else:
            place = _log_choose(self.queries, charges + 1)
        if self.final_share >= 1.0:
            return math.inf
        return place + self._number_before_a_question(charges) + nats - math.log1p(-self.final_share)

    def final_length(self, *, charges: int, nats: float = 0.0, last_charge: int | None = None) -> float:
        """Return the nats of a final after ``charges`` charges, if all outcomes cost ``nats``.

        Each of several answers also costs the negative logarithm of its own weight. The result is infinite if no share
        is kept for a final.

        Parameters
        ----------
        charges : int
            Charges made, at least 0.
        nats : float
            Cost of all outcomes so far.
        last_charge : int, optional
            Index of the last charged question, at least `charges`; by default the last declared one, which costs most.
        """
        last = (self.queries or 0) if last_charge is None else last_charge
        if not 0 <= charges <= last:
            raise InputError(
                "a final has at least 0 charges before it, and the index of the last is at least their number; got "
                f"{charges} charges, the last at {last}"
            )
        weight = self.final_share * self._share_before_a_final(charges)
        if weight <= 0.0:
            return math.inf
        return (self._places(charges, last) if charges else 0.0) + nats - math.log(weight)

    def _places(self, charges: int, last: int) -> float:
        """Return the nats of the positions of the charges, if the last one is at this index."""
        by_last = math.log(last + 1) + _log_choose(last, charges)
        if self.queries is None:
            return by_last
        even = _log_choose(self.queries, charges)
        cheaper, early = min(even, by_last), self.theory.early_share
        both = (1.0 - early) * math.exp(cheaper - even) + early * math.exp(cheaper - by_last)
        return cheaper - math.log(both)

    def _check(self, query: int, charges: int) -> None:
        if not 0 <= charges < query:
            raise InputError(
                f"query must be at least 1 and charges in [0, query), got query={query} and charges={charges}"
            )
        if self.queries is not None and query > self.queries:
            raise InputError(f"query must be at most the declared {self.queries}, got {query}")

    def _number_before_a_question(self, charges: int) -> float:
        """Return the nats a question pays for the number of charges before it; none follows the last charge."""
        if self.charges is None:
            return (charges + 1) * math.log(2.0)
        most, first = self.charges - 1, self.first_share or 0.5
        if not most or not charges:
            return -math.log(first) if most else 0.0
        return math.log(max(most, charges)) - math.log1p(-first)

    def _share_before_a_final(self, charges: int) -> float:
        """Return the share of a final's weight that histories with this number of charges have."""
        first, most = max(self.theory.first_share_of_finals, self.final_share), self.charges
        if not charges:
            return first
        if most is None:
            return (1.0 - first) * 2.0**-charges
        if not self.theory.falling:
            return (1.0 - first) / max(most, charges)
        most = max(most, charges)
        return (1.0 - first) * (most + 1) / (most * charges * (charges + 1))


def _log_choose(whole: int, chosen: int) -> float:
    chosen = min(chosen, whole)  # more than were declared cost as much as all of them
    if chosen == 1:
        return math.log(whole)
    return math.lgamma(whole + 1) - math.lgamma(chosen + 1) - math.lgamma(whole - chosen + 1)


# ---- noise


@dataclass(frozen=True)
class NoiseTails:
    """The reach of the mechanism's noise, in units of the plan's noise scale, for all questions at once.

    With probability at least ``1 - 0.05 beta`` no comparison is off by more than ``comparison``, and no released value
    by more than ``answer``. The questions are those of all views of the rows together, and this is the reach in view
    number ``view``.

    Notes
    -----
    The union bound counts a comparison's noise K times, one-sided; the threshold's noise once for each draw, two-sided,
    because a draw serves several questions; and the noise of a charged or revealed value K times, two-sided. Under
    target charging one noise is all three: K times, two-sided. Each question's noise is drawn after the question is
    chosen, so a union over indices is enough, without a tree. Each view draws its own thresholds: view 0, the guard's
    own metric, has half of their share of the failure probability, view v has ``1/(2 v (v + 1))`` of it.
    """

    queries: int
    charges: int
    beta: float
    mechanism: GuardMechanism = "numeric-sparse"
    view: int = 0
    theory: Theory = THEORY

    @cached_property
    def _calibration(self) -> Calibration:
        return Calibration(self.mechanism, self.charges)

    @property
    def comparison(self) -> float:
        """Reach of query noise minus threshold noise, in units of the noise scale."""
        threshold, query, _ = self._calibration.scales
        if self._calibration.releases_the_comparison:
            return query * math.log(self.queries / (self.theory.noise_share * self.beta))
        reach = query * math.log(self.queries / (2.0 * self._beta(self.theory.query_noise)))
        if not threshold:
            return reach
        draws = 2 * self._calibration.threshold_draws * max(1, self.view * (self.view + 1))
        return reach + threshold * math.log(draws / self._beta(self.theory.threshold_noise))

    @property
    def answer(self) -> float:
        """Largest noise of a charged value that intervals allow for, in units of the noise scale."""
        if self._calibration.releases_the_comparison:
            return self.comparison
        return self._calibration.scales[2] * math.log(self.queries / self._beta(self.theory.answer_noise))

    def _beta(self, share: float) -> float:
        """Return the failure probability of one kind of draws."""
        return share * self.theory.noise_share * self.beta
