"""Whatever a later version plans, prices and certifies otherwise, old ledgers stay sound, by the edition they name.

The package is loaded afresh, in a process of its own, with a newer edition of the theory or with other constants.
"""

import inspect
import json

import pytest
from cases import for_each
from children import Child
from golden.changing import leaves
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout.certainty import EDITIONS, THEORY

_START = """
import json, math, sys, tempfile
from pathlib import Path
from golden.asking import goldens
from golden.changing import *
from made_guards import made_guard
from reusable_holdout.certainty import THEORY
"""

PLACES = list(leaves(THEORY))

# of an edition, but no recorded answer rests on them
_UNUSED = [
    ("counts", "first"),  # the ledger keeps how many rows class counts were told to be worth
    ("counts", "growth"),
    *(("gate", "cells", 0, end) for end in ("side", "near", "far")),  # "yes" is all beyond what was named
    ("charge", "cells", 4, "near"),  # a nearest cell begins at the threshold, or at the prior
    ("reveal", "cells", 5, "near"),  # the middle cell lies around the prior
    ("gate_bets",),  # bets decide if "better" is told; what it certifies is what was named
    ("gate_bets_lose",),
]


def child(function, *arguments):
    """What a function of this file's says in a process of its own, as JSON."""
    source = f"{_START}\n{inspect.getsource(function)}\n"
    given = json.dumps(arguments)
    return Child(f"{source}print(json.dumps({function.__name__}(*json.loads(sys.argv[1]))))", given)


def said(process):
    printed = process.communicate()
    assert process.returncode == 0, printed
    return json.loads(printed.splitlines()[-1])


# ---- a newer edition


def by_a_newer_edition():
    """All that golden ledgers say otherwise."""
    with loaded_afresh(newer_edition(list(leaves(THEORY)))):  # noqa: F821
        return differences()  # noqa: F821


@pytest.mark.long(*GUARD, "tests/golden")
def test_by_a_newer_edition_old_ledgers_say_what_they_said():
    assert said(child(by_a_newer_edition)) == {}


def made_by_a_newer_edition():
    """What an old ledger and a new one rest on, of a version with another edition."""
    with (
        tempfile.TemporaryDirectory() as folder,  # noqa: F821
        loaded_afresh(newer_edition(list(leaves(THEORY)))),  # noqa: F821
    ):
        from reusable_holdout import Plan, verify

        (golden,) = (one for one in goldens() if one.name == "0.3.0.dev1/outcomes")  # noqa: F821
        ledger = golden.copied(Path(folder) / "copy")  # noqa: F821
        labels = golden.arrays[golden.expected["holdout"]["y"]["array"]]
        with golden.opened(ledger) as guard:
            view = guard.on("f1", allow={"vacuous"})
            view.evaluate(labels, prior=0.9)
            editions = [view.plan.shared.theory]
            fresh = labels[::-1].copy()
            with guard.rotate(None, fresh, early=True, allow={"vacuous"}, tolerance=0.25).guard as following:
                following.evaluate(fresh, prior=0.9)
                editions.append(following.plan.shared.theory)
        plan = Plan(rows=2_000, queries=50, tolerance=0.1, estimate=0.8)
        return editions, verify(ledger).problems, plan.final_half_width()


def test_an_old_ledger_goes_on_by_its_edition_and_its_next_epoch_by_the_newest():
    from reusable_holdout import Plan

    editions, problems, width = said(child(made_by_a_newer_edition))
    assert editions == [3, max(EDITIONS) + 1]
    assert problems == []
    assert width != Plan(rows=2_000, queries=50, tolerance=0.1, estimate=0.8).final_half_width()


def resumed_by_its_settings():
    """What an old ledger says to who makes its guard again, as on the first day."""
    changes = newer_edition(list(leaves(THEORY)))  # noqa: F821
    with (
        tempfile.TemporaryDirectory() as folder,  # noqa: F821
        loaded_afresh(changes | other_constants([("plan.wish", "_NOISE_SHARE", 0.08)])),  # noqa: F821
    ):
        (golden,) = (one for one in goldens() if one.name == "0.3.0.dev1/claims")  # noqa: F821
        ledger = golden.copied(Path(folder) / "copy")  # noqa: F821
        arrays = golden.arrays
        X, y = (arrays[golden.expected["holdout"][name]["array"]] for name in ("X", "y"))
        settings = {"queries": 60, "prior_error": 0.01, "estimate": 0.75, "overlapping": True}
        with made_guard(X, y, board="claims", ledger=ledger, **settings) as guard:
            views, question = golden.views(guard), golden.expected["following"][0]
            told = golden.ask(views, question)
            return (
                guard.plan.record() == golden.expected["plan"],
                told,
                question["told"] | {"replayed": False},
            )


def test_the_settings_of_the_first_day_resume_an_old_ledger_whatever_would_follow_from_them_now():
    same_plan, told, expected = said(child(resumed_by_its_settings))
    assert same_plan
    assert told == expected


def parts_in_turn(parts, places):
    """Parts that make an old ledger unsound, changed in a newer edition; numbers that do not, changed in its own."""
    harmful, unnoticed, last = [], [], ""
    for part in parts:
        with loaded_afresh(newer_edition([place for place in leaves(THEORY) if place[0] == part])):  # noqa: F821
            harmful += [(part, name) for name in unsound()]  # noqa: F821
    for place in map(tuple, places):
        with loaded_afresh(in_place(place)):  # noqa: F821
            last = next(unsound(last), "")  # noqa: F821
            unnoticed += [] if last or differences() else [place]  # noqa: F821
    return harmful, unnoticed


@pytest.mark.timeout(900)  # about sixty numbers, each beside forty ledgers
@pytest.mark.long(*GUARD, "tests/golden")
def test_each_number_of_the_theory_may_change_in_a_newer_edition_and_none_in_its_own():
    parts = list(dict.fromkeys(place[0] for place in PLACES))
    places = [place for place in PLACES if not any(place[: len(some)] == some for some in _UNUSED)]
    processes = [child(parts_in_turn, parts[start::2], places[start::2]) for start in range(2)]
    assert [said(process) for process in processes] == [[[], []]] * 2


# ---- constants of the planner, and of how numbers are found

_PLANNING = [
    ("plan.wish", "_NOISE_SHARE", 0.08),
    ("plan.wish", "_NOISE_NATS", 0.1),
    ("plan.wish", "_FIXED_NOISE_SHARE", 0.1),
    ("plan.wish", "_HONEST", 0.99),
    ("plan.wish", "_COMMON", [1.0, 0.0]),
    ("plan.wish", "_MOST_STATES", 8),
    ("plan.wish", "_MOST_SPARE", 10.0),
    ("plan.wish", "_SPARE_ACCURACY", 0.1),
    ("plan.wish", "_SLACK", -1e-2),
    ("plan.honest", "_REACH", 5.0),
    ("plan.honest", "_NODES_PER_BEND", 2.0),
    ("plan.plan", "_ROUNDING", -1.0),
    ("plan.solution", "_WIDEST", 0.01),
    ("guard.class_counts", "_LEAST_SPREAD", 0.1),
    ("guard.class_counts", "_EXACT", 0.7),
    ("metrics.ranks", "_BANDS", 4.0),
    ("guard.row_sets", "_SPARE", 10.0),
    ("guard.row_sets", "_NOTICED", 1.5),
]
_FINDING = [
    ("certainty.evidence", "_STEPS", 100),
    ("certainty.evidence", "_NEAR", 1e-14),
    ("certainty.evidence", "_BLOCK", 1 << 10),
    ("certainty.evidence", "_CHUNK", 8),
    ("certainty.evidence", "_CELLS", 1 << 14),
    ("certainty.evidence", "_LEAST_MEAN", 1e-10),
    ("certainty.certificate", "_AFFORDED", 1e-8),
    ("certainty.log_tails", "_STIRLING_FROM", 20.0),
]
# what a ledger's numbers and questions are made of: other mechanisms have other names, and grids do not change
_PART_OF_LEDGERS = [
    ("certainty.certificate", "GRID_SLACK", 1e-6),
    ("noise.calibration", "_COMPARISON", 18.0),
    ("guard.subjects", "_GRID", 1 << 27),
]


def with_other_constants(constants, stricter):
    """All that golden ledgers say otherwise."""

    def refuse_all(module):
        module._holds = lambda *_: False

    changes = other_constants(constants)  # noqa: F821
    if stricter:
        changed = changes["reusable_holdout.plan.wish"]
        changes["reusable_holdout.plan.wish"] = lambda module: (changed(module), refuse_all(module))
    with loaded_afresh(changes):  # noqa: F821
        return differences()  # noqa: F821


@pytest.mark.long(*GUARD, "tests/golden")
@for_each(("constants", "stricter"), [(_PLANNING, False), (_PLANNING, True), (_FINDING, False)])
def test_old_ledgers_say_what_they_said_when_a_later_version_plans_otherwise(constants, stricter):
    assert said(child(with_other_constants, constants, stricter)) == {}


@pytest.mark.long(*GUARD, "tests/golden")
@for_each("constant", _PART_OF_LEDGERS)
def test_a_change_of_what_ledgers_are_made_of_is_noticed(constant):
    assert said(child(with_other_constants, [constant], False))
