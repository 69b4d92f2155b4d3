"""Frozen certificates: released answers that leave the ledger, and are checked against it later."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Self

from reusable_holdout.errors import HoldoutError, InputError
from reusable_holdout.guard.configuration import Configuration, Epoch
from reusable_holdout.guard.views import VIEW, View
from reusable_holdout.ledger import Ledger, Row, genesis
from reusable_holdout.metrics.bound import Unit
from reusable_holdout.version import __version__
from reusable_holdout.ways import failed
from reusable_holdout.ways.table import PAIRED


class FrozenAnswer(NamedTuple):
    """One answer with the numbers that the ledger stores for it.

    Attributes
    ----------
    query : int
        Number of the question.
    kind : str
        The way in which it was asked.
    told : str
        Name of the outcome.
    prior, value, low, high : float
        In the metric's unit; the interval is that of the population value.
    """

    query: int
    kind: str
    told: str
    prior: float
    value: float
    low: float
    high: float

    @classmethod
    def of(cls, row: Row, metric: Mapping[str, Any]) -> Self:
        """Return the answer of a row about a metric."""
        unit = Unit.of(metric, paired=row.kind in PAIRED)
        low, high = unit.ends(row.low, row.high)
        return cls(row.query, row.kind, row.told, unit.own(row.prior), unit.own(row.value), low, high)


@dataclass(frozen=True, kw_only=True)
class FrozenCertificate:
    """A guard's answers with the facts to check them; it holds no path, no key and no row of the holdout.

    With probability `confidence`, the intervals of all answers of the ledger together contain the population values.

    Attributes
    ----------
    answers : tuple of FrozenAnswer
    metric : dict
        Description of the metric, as stored in the ledger.
    view : int
        Number of the view among the metrics of the rows.
    classes : tuple, "private" or None
        All classes that may occur, if the set of them is public.
    holdout : str
        Keyed digest of the holdout, hex.
    epoch : int
        Number of the holdout in the ledger.
    confidence : float
    theory : int
        Edition of the theory by which the answers are certified.
    head : str
        Seal of the ledger's last commit when it was frozen, hex.
    another_budget : bool
        True if the rows also had another budget: then the two sets of intervals are not jointly valid.
    library : str
        Version that froze it. A ledger confirms the attributes above, but not this one and the next.
    machine : str
        Name of the machine where the guard lives, or of the server that its ledger is on.
    """

    answers: tuple[FrozenAnswer, ...]
    metric: dict[str, Any]
    view: int
    classes: tuple[Any, ...] | str | None
    holdout: str
    epoch: int
    confidence: float
    theory: int
    head: str
    another_budget: bool
    library: str
    machine: str

    def __str__(self) -> str:
        last = self.answers[-1] if self.answers else None
        told = "" if last is None else f", the last {last.value:.4f} in [{last.low:.4f}, {last.high:.4f}]"
        return (
            f"{self.metric['name']}: {len(self.answers)} answers{told}; holdout {self.holdout[:12]}, "
            f"head {self.head[:12]}, theory {self.theory}, on {self.machine}"
        )

    def of(self, queries: Sequence[int]) -> Self:
        """Return the certificate of these answers alone.

        Parameters
        ----------
        queries : sequence of int
            Their numbers.

        Raises
        ------
        InputError
            If one of them is not among its answers.
        """
        known = {answer.query: answer for answer in self.answers}
        missing = [query for query in queries if query not in known]
        if missing:
            raise InputError(
                f"only this guard's answers about its metric can be frozen; query {missing[0]} is not one of them; "
                "nothing was frozen"
            )
        return replace(self, answers=tuple(known[query] for query in dict.fromkeys(queries)))

    def to_json(self) -> str:
        """Return JSON that :meth:`from_json` and ``reusable-holdout verify --certificate`` read."""
        parts = asdict(self) | {"answers": [one._asdict() for one in self.answers]}
        return json.dumps(parts, sort_keys=True, indent=1, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text that :meth:`to_json` returned.

        Raises
        ------
        InputError
            If it is something else.
        """
        try:
            parts = json.loads(text)
            answers = tuple(FrozenAnswer(**one) for one in parts.pop("answers"))
            found = cls(**parts | {"answers": answers, "classes": _fixed(parts["classes"])})
            queries = [answer.query for answer in answers]
            sound = (
                all(type(number) is int for number in (found.epoch, found.view, *queries))
                and len(set(queries)) == len(queries)
                and all(type(text) is str for text in (found.head, found.library, found.machine))
                and bool(str(found).encode())  # it can be shown
            )
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            sound = False
        if not sound:
            raise InputError(
                "a frozen certificate must be what to_json() wrote; got something else; nothing was verified"
            )
        return found

    @classmethod
    def read(cls, certificate: Self | str | Path) -> Self:
        """Return a certificate, given itself or its file.

        Raises
        ------
        InputError
            If there is none.
        """
        try:
            if isinstance(certificate, FrozenCertificate):
                text = certificate.to_json()  # one that was made by hand may be anything
            else:
                text = Path(certificate).read_text(encoding="utf-8")
        except (OSError, ValueError, TypeError, AttributeError):
            raise InputError(
                "certificate must be a FrozenCertificate, or a file that holds its to_json() and can be read; got "
                f"something else, of type {type(certificate).__name__}; nothing was verified"
            ) from None
        return cls.from_json(text)


def freeze(ledger: Ledger, epoch: int, view: int, queries: Sequence[int] | None) -> FrozenCertificate:
    """Freeze answers, by default all, about one view of an epoch; an InputError if one was not given about it."""
    rows = ledger.rows(epoch=epoch)
    seals = ledger.seals(epoch=epoch)  # read after the rows, so that no row is newer than the last seal
    text = ledger.configurations()[epoch - 1]
    configuration = Configuration.parse(text)
    about = configuration.views(rows)[view]
    told = [row for row in rows if row.view == view and _is_answer(row)]
    frozen = FrozenCertificate(
        answers=tuple(FrozenAnswer.of(row, about.metric) for row in told),
        head=(seals[-1][1] if seals else genesis(text)).hex(),
        library=__version__,
        machine=_machine(ledger),
        **_facts(configuration, about),
    )
    return frozen if queries is None else frozen.of(queries)


def _machine(ledger: Ledger) -> str:
    if ledger.url is not None and ledger.path is None:
        return urllib.parse.urlsplit(ledger.url).hostname or "a database server"
    import platform  # noqa: PLC0415 - needed only for freezing

    return platform.node() or "a machine without a name"


def frozen_problems(certificate: FrozenCertificate, epochs: Sequence[Epoch]) -> Iterator[str]:
    """Yield the statements of a frozen certificate that a ledger with these epochs does not confirm."""
    if not 1 <= certificate.epoch <= len(epochs) or not _is_of(certificate, epochs[certificate.epoch - 1]):
        yield (
            "the certificate is of another guard: its epoch, holdout, metric, classes, confidence or theory is not in "
            "the ledger"
        )
        return
    epoch = epochs[certificate.epoch - 1]
    heads = {sealed.hex(): last for last, sealed in epoch.seals if type(sealed) is bytes}
    last = (heads | {genesis(epoch.text).hex(): 0}).get(certificate.head)
    if last is None:
        yield "the certificate's head is not in the chain: it is of another ledger, or rows were cut off since"
        return
    known = {row.query: row for row in epoch.rows[:last]}
    for answer in certificate.answers:
        row = known.get(answer.query)
        if row is None:
            yield f"the certificate's query {answer.query} has no answer in the ledger up to the certificate's head"
        elif (
            row.view != certificate.view
            or not _is_answer(row)
            or FrozenAnswer.of(row, certificate.metric) != answer
        ):
            yield f"the certificate's query {answer.query} differs from the answer in the ledger: it was changed"


def _is_of(certificate: FrozenCertificate, epoch: Epoch) -> bool:
    """Return True if the certificate's facts of the guard are those in the ledger."""
    try:
        configuration = Configuration.parse(epoch.text)
        view = dict(enumerate(configuration.views(epoch.rows)))[certificate.view]
        found = _facts(configuration, view)
    except (HoldoutError, LookupError, TypeError):  # anything may stand in a ledger that was changed
        return False
    return all(getattr(certificate, name) == value for name, value in found.items())


def _facts(configuration: Configuration, view: View) -> dict[str, Any]:
    """Return the facts of the guard that a certificate states and the ledger confirms."""
    return {
        "metric": {name: part for name, part in view.metric.items() if name != "known"},  # that would be long
        "view": view.number,
        "classes": _fixed(configuration.classes),
        "holdout": configuration.holdout,
        "epoch": configuration.epoch,
        "confidence": configuration.plan["confidence"],
        "theory": view.plan["shared"]["theory"],
        "another_budget": configuration.another_budget,
    }


def _fixed(classes: list[Any] | str | None) -> tuple[Any, ...] | str | None:
    return tuple(classes) if isinstance(classes, list) else classes


def _is_answer(row: Row) -> bool:
    return row.kind != VIEW and not failed(row)
