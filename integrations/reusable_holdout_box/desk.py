"""The part of a box that replies to messages; a reply holds only what the guard has released."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reusable_holdout import Answer, Choice
from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.version import __version__
from reusable_holdout_box.folder import OpenBox
from reusable_holdout_box.frames import Message, packed
from reusable_holdout_box.guards import WAYS, ask

__all__ = ["Desk", "refusal"]

_PAGE = 2_000
_MOST_NAME = 200
_MOST_LINES = 100
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # control characters, invisible and unassigned ones
_FORMULA = "=+-@"  # a spreadsheet runs a text that begins with one of these as a formula

_STATE = ("answered", "queries_asked", "queries_left", "charges_left", "halted", "halt_reason", "epoch")
_QUESTION = ("predictions", "codes", "name")
_PARTS: dict[str, tuple[str, ...]] = {
    "about": (),
    "status": (),
    "history": ("after",),
    "ids": ("after",),
    "evaluate": (*_QUESTION, "prior", "tolerance"),
    "many": (*_QUESTION, "prior", "tolerance"),
    "compare": (*_QUESTION, "prior", "tolerance"),
    "gate": (*_QUESTION, "at_least", "tolerance"),
    "reveal": (*_QUESTION, "prior"),
    "choose": (*_QUESTION, "prior"),
    "final": _QUESTION,
}
"""The parts that each kind of message may have. No message can change a setting of the guard."""


def refusal(code: str, message: str, **details: Any) -> bytes:
    """Return a reply that says why a question was not answered."""
    return packed({"error": {"code": code, "message": message, "details": details}})


class Desk:
    """The part of one open box that replies to messages.

    Parameters
    ----------
    box : OpenBox
    most_bytes : int
        Greatest length of a message; clients are told this number.
    """

    def __init__(self, box: OpenBox, *, most_bytes: int) -> None:
        self._box, self._guard, self._settings = box, box.guard, box.settings
        self._most_bytes = most_bytes
        self._lines: set[str] = set()
        self._kept: tuple[int, list[dict[str, Any]]] = (0, [])

    def answer(self, message: Message) -> bytes:
        """Return the reply to a message. Every error becomes a reply; only an interrupt or exit is raised."""
        try:
            return packed(self._answer(message))
        except (Halted, ModelError) as error:
            answers = [one and _shown(one) for one in error.answers]
            if isinstance(error, Halted):
                return refusal("halted", str(error), reason=error.reason, answers=answers)
            return refusal("model", str(error), answers=answers)
        except LedgerError as error:  # its message names paths, so only the owner gets it
            self._tell_owner(f"the ledger cannot be used: {error}")
            return refusal("unavailable", "the box cannot use its ledger; nothing was answered")
        except HoldoutError as error:
            code = "bad_input" if isinstance(error, InputError) else "failed"
            return refusal("budget" if isinstance(error, BudgetError) else code, str(error))
        except Exception as error:  # for example MemoryError
            self._tell_owner(f"a question failed ({type(error).__name__})")
            return refusal("failed", "the question failed inside the box; history() shows if it was answered")

    def _tell_owner(self, line: str) -> None:
        """Write a line to standard error, each line only once, so that nobody who asks can fill the log."""
        if line not in self._lines and len(self._lines) < _MOST_LINES:
            self._lines.add(line)
            print(line, file=sys.stderr, flush=True)

    @sealed
    def _answer(self, message: Message) -> Mapping[str, Any]:
        head = dict(message.head)
        asked = head.pop("ask", None)
        if not isinstance(asked, str) or asked not in _PARTS:
            raise InputError(f"'ask' must be one of {', '.join(_PARTS)}; it is not; nothing was asked")
        if not head.keys() <= set(_PARTS[asked]):
            parts = ", ".join(_PARTS[asked]) or "nothing more"
            raise InputError(f"this message may have {parts}; it has more; nothing was asked")
        for name, (is_one, what) in _CHECKS.items():
            given = head.get(name)
            several = asked == "many" and name == "name" and isinstance(given, list)
            if name in head and not all(map(is_one, given if several else [given])):  # type: ignore[arg-type]
                raise InputError(f"{name!r} must be {what}; it is not; nothing was asked")
        if asked in WAYS:
            return self._asked(asked, head, message.arrays)
        telling = {"about": self._about, "status": self._status, "history": self._history, "ids": self._ids}
        return telling[asked](head.get("after", 0))

    # ---- questions

    def _asked(self, way: str, head: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> Mapping[str, Any]:
        kind = "evaluate" if way == "many" else way
        if kind not in self._settings.allow:
            allowed = ", ".join(self._settings.allow)
            raise InputError(f"the owner does not allow {kind}; nothing was asked; the box answers {allowed}")
        codes = head.pop("codes", False)
        predictions = [*(self._labels(one) if codes else one for one in arrays), *head.pop("predictions", ())]
        stated = {name: one for name, one in head.items() if one is not None}
        found = ask(self._guard, way, predictions, **stated)
        if isinstance(found, Choice):
            return {"index": found.index, "others": found.others, "answers": [_shown(found.answer)]}
        return {"answers": [_shown(one) for one in found]}

    def _labels(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Return the predicted labels that a message's codes stand for.

        A code is the index of a class in the guard's classes. If the set of labels is private, a code is the hash of a
        text label, or a whole number that is itself the label.
        """
        classes, private = self._guard.classes, self._guard.private_labels
        if private is not None and codes.dtype == np.int64:
            return codes.view("V8") if private == "text" else codes
        if classes is None or codes.dtype.kind != "u" or int(codes.max()) >= len(classes):
            raise InputError("codes must be positions in the classes, from 0; got others; nothing was asked")
        labels: NDArray[Any] = classes[codes]
        return labels

    # ---- what is known

    def _about(self, _: int) -> dict[str, Any]:
        guard, ids = self._guard, self._box.ids
        plain = {name: getattr(guard, name) for name in ("private_labels", "rows", "digest")}
        return plain | {
            "version": __version__,
            "metric": guard.metric.describe(),
            "plan": guard.plan.record(),
            "classes": None if guard.classes is None else guard.classes.tolist(),
            "ids": None if ids is None else len(ids),
            "allow": list(self._settings.allow),
            "most_bytes": self._most_bytes,
        }

    def _status(self, _: int) -> dict[str, Any]:
        return {name: getattr(self._guard, name) for name in _STATE}

    def _history(self, after: int) -> dict[str, Any]:
        answered = self._guard.answered
        if answered != self._kept[0]:  # clients ask for a long history page by page
            frame = self._guard.history()
            plain = frame.assign(asked_at=[one.isoformat() for one in frame["asked_at"]])
            rows = [
                {str(name): one.item() if isinstance(one, np.generic) else one for name, one in row.items()}
                for row in plain.to_dict("records")
            ]
            self._kept = answered, rows
        return {"rows": [row for row in self._kept[1] if row["query"] > after][:_PAGE], "page": _PAGE}

    def _ids(self, after: int) -> dict[str, Any]:
        return {"ids": [] if self._box.ids is None else self._box.ids[after : after + _PAGE]}


def _shown(answer: Answer) -> dict[str, Any]:
    return answer._asdict() | {"guardrails": []}


def _is_name(name: object) -> bool:
    """Return True if a question's name is harmless when the owner sees it in a terminal or a spreadsheet."""
    return (
        isinstance(name, str)
        and len(name) <= _MOST_NAME
        and not unicodedata.normalize("NFKC", name).lstrip().startswith(tuple(_FORMULA))  # also full-width
        and not any(unicodedata.category(one) in _UNSHOWN for one in name)
    )


_CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "after": (lambda one: type(one) is int and 0 <= one < 2**53, "a whole number from 0"),
    "codes": (lambda one: type(one) is bool, "true or false"),
    "predictions": (
        lambda one: isinstance(one, list) and all(isinstance(row, list) for row in one),
        "a list of lists, one for each model",
    ),
    "name": (
        _is_name,
        f"one printable line of at most {_MOST_NAME} characters that does not begin with one of {_FORMULA}",
    ),
}
"""Checks of the parts of a message that the guard itself does not check, each with the text of its error message."""
