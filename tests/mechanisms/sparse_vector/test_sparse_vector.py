"""The integer core: scripted noise in, the transcript of the paper out."""

import math
from fractions import Fraction

import numpy as np
from cases import for_each, refuses
from mechanisms.scripted_noise import ScriptedNoise, spent

from reusable_holdout.errors import BudgetError, InputError
from reusable_holdout.mechanisms import DiscreteExponential
from reusable_holdout.noise import DiscreteLaplace, KeyedNoise, NoiseScales, SparseVector, key_from_seed

SCALES = NoiseScales(Fraction(200), Fraction(400), Fraction(100))
NOISE = KeyedNoise(key_from_seed(11))


def above(core, deviation, threshold, question):
    return core.first_above(np.array([deviation]), np.array([threshold]), [question]) == 0


def scripted(script, *, charges=2):
    noise = ScriptedNoise(script)
    return SparseVector(scales=SCALES, noise=noise, charges=charges)


@for_each("query_noise", [-300, 0, 3])
def test_a_tie_is_above_alone_and_in_a_batch(query_noise):
    """The paper says "at least": else a question asked alone would be free that is charged in a batch."""
    core = scripted({("threshold", spent(0)): 7, ("query", b"a"): query_noise})
    tie = 100 + 7 - query_noise
    for deviation, expected in ((tie - 1, False), (tie, True), (tie + 1, True)):
        assert core.is_above(deviation, 100, b"a") is expected
        assert above(core, deviation, 100, b"a") is expected
        assert core.gap(deviation, 100, b"a") == deviation - tie


def test_the_threshold_noise_is_held_until_a_charge_and_then_renewed():
    script = {("threshold", spent(0)): 50, ("threshold", spent(1)): -50, ("threshold", spent(2)): 0}
    script |= {("query", q): 0 for q in (b"a", b"b", b"c", b"d", b"e")}
    script |= {("answer", b"c"): 4, ("answer", b"e"): -9}
    core = scripted(script)
    asked = ((149, b"a"), (60, b"b"), (150, b"c"))
    assert [above(core, value, 100, q) for value, q in asked] == [False, False, True]
    assert core.charge(150, b"c") == 154
    assert [above(core, value, 100, q) for value, q in ((49, b"d"), (50, b"e"))] == [False, True]
    assert core.charge(50, b"e") == 41
    assert core.halted


def test_a_batch_stops_at_its_first_query_above():
    script = {("threshold", spent(0)): 0, ("query", b"a"): -1, ("query", b"b"): 1, ("query", b"c"): 90}
    core = scripted(script)
    deviations, thresholds = np.array([10, 10, 10]), np.array([10, 11, 10])
    assert core.first_above(deviations, thresholds, [b"a", b"b", b"c"]) == 1
    assert core.first_above(deviations[:1], thresholds[:1], [b"a"]) is None
    assert core.spent == 0


def test_noise_drawn_once_for_a_batch_is_that_of_each_query_and_gives_the_same_transcript():
    questions = [number.to_bytes(2, "big") for number in range(2000)]
    deviations, thresholds = np.arange(2000, dtype=np.int64), np.full(2000, 2500, dtype=np.int64)
    transcripts = []
    for once in (True, False):
        core = SparseVector(scales=SCALES, noise=NOISE, charges=5)
        noise = core.query_noise(questions) if once else None
        start, found = 0, []
        while not core.halted:
            rest = slice(start, None)
            given = None if noise is None else noise[rest]
            first = core.first_above(deviations[rest], thresholds[rest], questions[rest], query_noise=given)
            if first is None:
                break
            start += first + 1
            found.append((start - 1, core.charge(int(deviations[start - 1]), questions[start - 1])))
        transcripts.append(found)
    assert transcripts[0] == transcripts[1]
    assert transcripts[0]
    alone = [int(core.query_noise([question])[0]) for question in questions[:100]]
    assert core.query_noise(questions[:100]).tolist() == alone


def test_a_resumed_mechanism_goes_on_where_it_was():
    first = SparseVector(scales=SCALES, noise=NOISE, charges=3)
    first.charge(10, b"a")
    resumed = SparseVector(scales=SCALES, noise=NOISE, charges=3, spent=1, last_charged=b"a")
    assert resumed._offset == first._offset
    assert resumed.charge(20, b"b") == first.charge(20, b"b")
    assert (resumed.spent, resumed.last_charged) == (first.spent, first.last_charged) == (2, b"b")


def test_after_the_last_charge_nothing_is_answered():
    core = SparseVector(scales=SCALES, noise=NOISE, charges=1)
    core.charge(5, b"a")
    assert (core.halted, core.spent, core.charges, core.scales) == (True, 1, 1, SCALES)
    refuses(BudgetError, "nothing was charged", core.charge, 5, b"b")
    refuses(BudgetError, "nothing was answered", above, core, 5, 0, b"b")
    assert core.spent == 1


def test_the_difference_of_the_means_is_added_to_the_threshold():
    """Exponential noise lies on one side; the mean of a query's noise less that of the threshold's is rounded."""
    script = ScriptedNoise({("threshold", spent(0)): 30, ("query", b"a"): 70})
    core = SparseVector(scales=SCALES, noise=script, charges=1, law=DiscreteExponential)
    difference = sum(
        sign / math.expm1(1 / float(scale)) for sign, scale in ((1, SCALES.query), (-1, SCALES.threshold))
    )
    assert round(difference) == 200
    assert core.gap(1_000, 100, b"a") == 1_000 + 70 - 100 - 30 - 200


@for_each("held", [True, False])
def test_the_thresholds_noise_is_drawn_under_the_charges_and_the_question_it_follows(held):
    """Held for good it is drawn under none. So after a return to an earlier charge, another question renews it."""
    law = DiscreteLaplace(SCALES.threshold)
    core = SparseVector(scales=SCALES, noise=NOISE, charges=3, threshold_noise="held" if held else "renewed")
    for charged, follows in ((0, b""), (1, b"a"), (2, b"b")):
        name = bytes(8) if held else charged.to_bytes(8, "big") + follows
        drawn = NOISE.draw(law, label="threshold", question=name)
        query = NOISE.draw(DiscreteLaplace(SCALES.query), label="query", question=b"?")
        assert core.gap(50, 20, b"?") == 50 + query - 20 - drawn
        core.charge(0, b"ab"[charged : charged + 1] or b"c")


def test_a_core_starts_with_no_charge_spent():
    given = {"scales": SCALES, "noise": NOISE, "charges": 2}
    made = SparseVector(**given)
    assert (made.spent, made.last_charged, made.halted) == (0, b"", False)
    spent_all = SparseVector(**given, spent=2)
    assert (spent_all.spent, spent_all.halted) == (2, True)


@for_each(("charges", "used"), [(1, 2), (1, -1), (-1, 0)])
def test_charges_spent_lie_within_the_budget(charges, used):
    refuses(InputError, "charges", SparseVector, scales=SCALES, noise=NOISE, charges=charges, spent=used)


@for_each("end", [2**60 + 1, 2**63 - 1, -(2**60) - 1, -(2**63)])
def test_a_batch_that_noise_could_carry_past_an_int64_is_refused_and_charges_nothing(end):
    """The sum would wrap round: what is far above its threshold would be below it, and free."""
    ends, middle = np.array([0, end]), np.array([0, 0])
    sparse_vector = SparseVector(scales=SCALES, noise=NOISE, charges=1)
    for ask in (
        lambda: sparse_vector.first_above(ends, middle, [b"a", b"b"]),
        lambda: sparse_vector.first_above(middle, ends, [b"a", b"b"]),
    ):
        refuses(InputError, r"at most 2\*\*60 grid units from 0", ask)
    assert sparse_vector.spent == 0
