"""A forger changes one stored fact and seals the ledger again: `verify` finds it, but for those that the docs list."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from golden.asking import goldens
from long_tests import GUARD
from made_guards import made_guard

from reusable_holdout import verify
from reusable_holdout.earlier import Earlier
from reusable_holdout.guard import verification
from reusable_holdout.guard.configuration import read_epochs
from reusable_holdout.ledger import Row
from reusable_holdout.ledger.records import genesis, seal

PAGE = Path(__file__).parents[2] / "docs" / "one-budget.md"
WORDS = [
    *("allow", "refuse", "noiseless", "standard-svt", "mean", "bounded", "ratio", "paired", "gate"),
    *("claims", ""),
]
KINDS = ["check", "compare", "reveal", "choose", "final", "gate", "ladder", "claim"]
GOLDENS = {golden.name: golden for golden in goldens()}
FEW = ["0.2.1/halted", "0.2.1/rotated", "0.3.0.dev2/halted", "0.3.0.dev2/gates"]


def unverifiable():
    """Fields that the docs say `verify` cannot check."""
    section = PAGE.read_text().split("## What `verify` cannot see", 1)[1].split("\n## ", 1)[0]
    cells = re.findall(r"^\| (`[^|]*`) \|", section, re.MULTILINE)
    return {name for cell in cells for name in cell.strip("`").split("`, `")}


# ---- forgeries


def leaves(value, place=()):
    """Every place in JSON where no more places are, with what stands there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = [leaf for name, one in inner for leaf in leaves(one, (*place, name))]
    return found or [(place, value)]


def wrong(value):
    """Other values that could stand there, of its kind and of others."""
    others = [None, True, 0.25, "x", [1], {"x": 1}]
    if isinstance(value, bool):
        others = [not value, None]
    elif isinstance(value, int):
        others = [value + 1, value * 4 + 1, value // 4, -1, None]
    elif isinstance(value, float):
        others = [value * 4.0, value / 4.0, value + 1e-3, value + 1.0, -value, None]
    elif isinstance(value, str):
        others = [value + "x", value[:-1] + "0", *WORDS, None]
    return [other for other in others if other != value]


def changed(value, place, new):
    """JSON with something else in one place; without that place, if it is nothing at all."""
    if not place:
        return new
    copy, (first, *rest) = value.copy(), place
    if new is Ellipsis and not rest:
        del copy[first]
    else:
        copy[first] = changed(value[first], rest, new)
    return copy


def text_of(parts):
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def texts_forged(text):
    """Texts with one fact changed or gone, and the field's name."""
    parts = json.loads(text)
    for place, value in leaves(parts):
        name = ".".join(part for part in place if isinstance(part, str))
        for new in [*wrong(value), Ellipsis]:
            yield name, text_of(changed(parts, place, new))


def rows_forged(row):
    """Rows with one column changed, and its name; of a row that opens a view each fact of that, too."""
    for column in Row._fields:
        value = getattr(row, column)
        others = [bytes(32)] if isinstance(value, bytes) else KINDS if column == "kind" else wrong(value)
        for new in others:
            if type(new) is type(value) and new not in WORDS and new != value:
                yield f"row.{column}", row._replace(**{column: new})
    if row.kind == "view":
        for name, told in texts_forged(row.told):
            yield name, row._replace(told=told)


def chosen(rows):
    """Places of the rows that open views, and of one of each other sort."""
    sorts = {}
    for place, row in enumerate(rows):
        unlike = (
            place if row.kind == "view" else (row.kind, row.charged, row.view > 0, row.batch == row.query)
        )
        sorts.setdefault(unlike, place)
    return sorts.values()


def forgeries(epochs):
    """Ledgers with one change each, not sealed yet, and the field's name."""
    for number, epoch in enumerate(epochs):
        before, after = epochs[:number], epochs[number + 1 :]
        for name, text in texts_forged(epoch.text):
            if not (number and name == "previous"):  # which is made to fit
                yield name, [*before, epoch._replace(text=text), *after]
        for place in chosen(epoch.rows):
            for name, row in rows_forged(epoch.rows[place]):
                rows = [*epoch.rows[:place], row, *epoch.rows[place + 1 :]]
                yield name, [*before, epoch._replace(rows=rows), *after]


def sealed(epochs):
    """The same with seals that fit."""
    made, head = [], ""
    for number, epoch in enumerate(epochs):
        text = text_of(json.loads(epoch.text) | {"previous": head}) if number else epoch.text
        last, start, seals = genesis(text), 0, []
        for end, _ in epoch.seals:
            last = seal(last, epoch.rows[start:end])
            seals.append((end, last))
            start = end
        head = last.hex()
        made.append(epoch._replace(text=text, seals=seals))
    return made


@pytest.fixture
def passing(monkeypatch):
    """Gives the names of the fields of a ledger that can be changed without `verify` finding it, and how many were."""

    def find(ledger, names=None):
        epochs, _ = read_epochs(ledger, None)
        current = [epochs]
        monkeypatch.setattr(verification, "read_epochs", lambda *_: (sealed(current[0]), None))
        assert verify(ledger).problems == []
        passed, tried = set(), 0
        for name, current[0] in forgeries(epochs):
            if name not in passed and (names is None or name in names):
                tried += 1
                passed |= {name} if verify(ledger).sound else set()
        monkeypatch.undo()
        return passed, tried

    return find


@pytest.fixture
def stated(tmp_path):
    """A ledger whose owner stated what others leave out."""
    y = np.arange(400) % 2
    more = {"delta": 1e-6, "sample_weight": 1.0 + y, "noise": 1e-4, "threshold": 0.3, "charges": 1}
    with made_guard(None, y, queries=5, ledger=tmp_path / "stated.db", vacuous=True, **more) as guard:
        guard.evaluate(y, prior=0.9, name="first")
    return tmp_path / "stated.db"


@pytest.mark.parametrize("name", FEW)
def test_whatever_is_forged_is_found_but_what_the_docs_list(name, passing, tmp_path):
    passed, tried = passing(GOLDENS[name].copied(tmp_path / name.replace("/", " ")))
    assert tried > 400
    assert passed - unverifiable() == set()


@pytest.mark.long(*GUARD, "tests/golden", "docs/one-budget.md")
@pytest.mark.parametrize("name", [name for name in GOLDENS if name not in FEW])
def test_whatever_is_forged_in_a_released_ledger_is_found_but_what_the_docs_list(name, passing, tmp_path):
    passed, tried = passing(GOLDENS[name].copied(tmp_path / name.replace("/", " ")))
    assert tried > 400
    assert passed - unverifiable() == set()


@pytest.mark.long(*GUARD, "tests/golden", "docs/one-budget.md")
def test_what_the_docs_list_cannot_be_found(passing, stated, tmp_path):
    passed, listed = passing(stated)[0], unverifiable()
    assert passed - listed == set()
    for name, golden in GOLDENS.items():
        if listed - passed:
            passed |= passing(golden.copied(tmp_path / name.replace("/", " ")), listed - passed)[0]
    assert listed - passed == set()


# ---- more than one field


def test_rules_that_were_forged_alike_in_all_places_are_found(tmp_path):
    """Only the rules of scores and of pairs have the nats that are reserved beside the charges."""
    ledger = GOLDENS["0.2.1/accuracy"].copied(tmp_path / "accuracy")
    (epoch,), _ = read_epochs(ledger, None)
    parts = json.loads(epoch.text)
    for factor, problem in (
        (1.0, None),
        (4.0, "rules.scores.reserved_nats"),
        (0.01, "rules.scores.reserved_nats"),
    ):
        for rules in ("scores", "pairs"):
            forged = parts["rules"][rules]
            parts["rules"][rules] = forged | {"reserved_nats": forged["reserved_nats"] * factor}
        text = text_of(parts)
        found = list(Earlier.parse(text).unfounded(text))
        assert found == [] if problem is None else problem in found
        parts = json.loads(epoch.text)
