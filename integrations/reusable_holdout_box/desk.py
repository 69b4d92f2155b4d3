"""What a box answers: one message in, one out. Whatever comes, nothing leaves but what the guard released."""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reusable_holdout.deferred import pandas as pd
from reusable_holdout.errors import BudgetError, Halted, HoldoutError, InputError, LedgerError, ModelError
from reusable_holdout.guard import Answer
from reusable_holdout.guard.boundary import sealed
from reusable_holdout.version import __version__
from reusable_holdout_box.folder import OpenBox
from reusable_holdout_box.frames import Message, packed

__all__ = ["Desk", "refusal"]

_PAGE = 2_000
_MOST_NAME = 200
_MOST_LINES = 100
_UNSHOWN = {"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"}  # controls, invisible marks, unassigned
_FORMULA = "=+-@"  # what a spreadsheet takes for the beginning of one
_TOLD = ("value", "low", "high", "threshold", "nats")
_CODES: list[tuple[type[HoldoutError], str]] = [
    (BudgetError, "budget"),
    (InputError, "bad_input"),
]


def refusal(code: str, message: str, **details: Any) -> bytes:
    """Message that says why nothing was answered."""
    return packed({"error": {"code": code, "message": message, "details": details}})


class Desk:
    """Answers of one open box.

    Parameters
    ----------
    box : OpenBox
    most_bytes : int
        Longest message, which clients are told.
    """

    def __init__(self, box: OpenBox, *, most_bytes: int) -> None:
        self._box, self._guard, self._settings = box, box.guard, box.settings
        self._most_bytes = most_bytes
        self._lines: set[str] = set()
        self._kept: tuple[int, list[dict[str, Any]]] = (0, [])
        self._asking: dict[str, Callable[[_Request], list[Answer]]] = {
            "evaluate": self._evaluate,
            "many": self._many,
            "compare": self._compare,
            "reveal": self._reveal,
            "final": self._final,
        }
        self._telling: dict[str, Callable[[_Request], Mapping[str, Any]]] = {
            "about": self._about,
            "status": self._status,
            "history": self._history,
            "ids": self._ids,
        }

    def answer(self, message: Message) -> bytes:
        """Reply to a message; it never raises but when the process is to end."""
        try:
            return self._answer(message)
        except Halted as halted:
            return refusal(
                "halted", str(halted), reason=halted.reason, answers=self._each_shown(halted.answers)
            )
        except ModelError as error:
            return refusal("model", str(error), answers=self._each_shown(error.answers))
        except LedgerError as error:  # its words are for the owner: they name paths
            self._tell_owner(f"the ledger cannot be used: {error}")
            return refusal(
                "unavailable", "the box cannot use its ledger; nothing was answered; its owner is told why"
            )
        except HoldoutError as error:
            code = next((code for kind, code in _CODES if isinstance(error, kind)), "failed")
            return refusal(code, str(error))
        except Exception as error:  # no memory is left, say
            self._tell_owner(f"a question failed ({type(error).__name__})")
            return refusal(
                "failed", "it failed inside the box; nothing was answered that is not in history()"
            )

    def _tell_owner(self, line: str) -> None:
        """Once: whoever asks must not be able to fill the log."""
        if line not in self._lines and len(self._lines) < _MOST_LINES:
            self._lines.add(line)
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

    @sealed
    def _answer(self, message: Message) -> bytes:
        request = _Request(message)
        asked = request.text("ask")
        if asked not in _PARTS:
            raise InputError(f"a box is asked {', '.join(_PARTS)}; got another; nothing was asked")
        request.check_parts(_PARTS[asked])
        if asked in self._telling:
            return packed(self._telling[asked](request))
        self._check_allowed("evaluate" if asked == "many" else asked)
        if asked == "choose":
            return packed(self._choose(request))
        return packed({"answers": [self._shown(one) for one in self._asking[asked](request)]})

    def _check_allowed(self, way: str) -> None:
        if way not in self._settings.allow:
            raise InputError(
                f"this box answers {', '.join(self._settings.allow)}; its owner does not allow {way}; nothing was "
                "asked and nothing was charged"
            )

    # ---- questions

    def _evaluate(self, request: _Request) -> list[Answer]:
        (one,) = self._predictions(request, 1)
        stated = request.stated("prior", "tolerance")
        return [self._guard.evaluate_predictions(one, name=request.name(), **stated)]

    def _many(self, request: _Request) -> list[Answer]:
        given = self._predictions(request, None)
        stated = request.stated("priors", "tolerances")
        names = request.names(len(given))
        return self._guard.evaluate_many(given, stated.pop("priors", None), names=names, **stated)

    def _compare(self, request: _Request) -> list[Answer]:
        new, old = self._predictions(request, 2)
        stated = request.stated("prior", "tolerance")
        return [self._guard.compare_predictions(new, old, name=request.name(), **stated)]

    def _reveal(self, request: _Request) -> list[Answer]:
        (one,) = self._predictions(request, 1)
        return [self._guard.reveal_predictions(one, name=request.name(), **request.stated("prior"))]

    def _final(self, request: _Request) -> list[Answer]:
        several = self._predictions(request, None)
        found = self._guard.final_predictions(
            several[0] if len(several) == 1 else several, name=request.name()
        )
        return found if isinstance(found, list) else [found]

    def _choose(self, request: _Request) -> dict[str, Any]:
        choice = self._guard.choose_predictions(
            self._predictions(request, None), request.stated("priors").get("priors"), name=request.name()
        )
        return {"index": choice.index, "others": choice.others, "answers": [self._shown(choice.answer)]}

    def _predictions(self, request: _Request, count: int | None) -> list[Any]:
        """Predictions of a question: arrays behind the message, or lists in it."""
        found: list[Any] = list(request.arrays)
        if request.has("predictions"):
            found += request.listed("predictions")
        elif request.flag("codes"):
            found = [self._labels(one) for one in found]
        if not found or (count is not None and len(found) != count):
            raise InputError(
                f"this question is about {count or 'some'} predictions; got {len(found)}; nothing was asked"
            )
        return found

    def _labels(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Labels of codes: places of classes, or of a private set of labels what each is compared as."""
        classes = self._guard.classes
        private = self._guard.private_labels
        if private is not None and codes.dtype == np.int64:
            return codes.view("V8") if private == "text" else codes
        if classes is None or codes.dtype.kind != "u" or int(codes.max()) >= len(classes):
            raise InputError("codes must be places of classes, from 0; got others; nothing was asked")
        labels: NDArray[Any] = classes[codes]
        return labels

    def _each_shown(self, answers: Sequence[Answer | None]) -> list[dict[str, Any] | None]:
        """Answers as they travel; None of what failed."""
        return [None if answer is None else self._shown(answer) for answer in answers]

    def _shown(self, answer: Answer) -> dict[str, Any]:
        """An answer as it travels; of verdicts nothing but whether it was charged."""
        shown = answer._asdict() | {"guardrails": []}
        return self._verdict(shown) if self._settings.verdict_only else shown

    def _verdict(self, row: dict[str, Any]) -> dict[str, Any]:
        """Whether it was charged; a ladder's prior is the best so far, which was measured and not stated."""
        untold = _TOLD if self._guard.takes_priors else (*_TOLD, "prior")
        return row | dict.fromkeys(untold, math.nan) | {"told": "charged" if row["charged"] else "agreed"}

    # ---- what is known

    def _about(self, _: _Request) -> dict[str, Any]:
        guard, ids = self._guard, self._box.ids
        classes = guard.classes
        return {
            "version": __version__,
            "metric": guard.metric.describe(),
            "policy": guard.policy,
            "plan": guard.plan.record(),
            "classes": None if classes is None else classes.tolist(),
            "private_labels": guard.private_labels,
            "rows": guard.rows,
            "ids": None if ids is None else len(ids),
            "digest": guard.digest,
            "allow": list(self._settings.allow),
            "verdict_only": self._settings.verdict_only,
            "most_bytes": self._most_bytes,
        }

    def _status(self, _: _Request) -> dict[str, Any]:
        guard = self._guard
        asked = guard.queries_asked
        return {
            "answered": guard.answered,
            "queries_asked": asked,
            "queries_left": guard.plan.queries - asked,
            "charges_left": guard.charges_left,
            "halted": guard.halted,
            "halt_reason": guard.halt_reason,
            "epoch": guard.epoch,
        }

    def _history(self, request: _Request) -> dict[str, Any]:
        after = request.whole("after")
        answered = self._guard.answered
        if answered != self._kept[0]:  # it is long, and asked for again and again
            rows = _rows(self._guard.history())
            self._kept = (
                answered,
                [self._verdict(row) for row in rows] if self._settings.verdict_only else rows,
            )
        return {"rows": [row for row in self._kept[1] if row["query"] > after][:_PAGE], "page": _PAGE}

    def _ids(self, request: _Request) -> dict[str, Any]:
        after = request.whole("after")
        return {"ids": [] if self._box.ids is None else self._box.ids[after : after + _PAGE]}


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    plain = frame.assign(asked_at=[one.isoformat() for one in frame["asked_at"]])
    return [
        {str(name): one.item() if isinstance(one, np.generic) else one for name, one in row.items()}
        for row in plain.to_dict("records")
    ]


_OF_PREDICTIONS = ("predictions", "codes")
_PARTS = {
    "about": (),
    "status": (),
    "history": ("after",),
    "ids": ("after",),
    "evaluate": (*_OF_PREDICTIONS, "prior", "tolerance", "name"),
    "many": (*_OF_PREDICTIONS, "priors", "tolerances", "names"),
    "compare": (*_OF_PREDICTIONS, "prior", "tolerance", "name"),
    "reveal": (*_OF_PREDICTIONS, "prior", "name"),
    "choose": (*_OF_PREDICTIONS, "priors", "name"),
    "final": (*_OF_PREDICTIONS, "name"),
}
"""What a message may hold beside what it asks: nothing of a guard's settings is among it."""


class _Request(NamedTuple):
    """A message, of which each part is taken for what it must be."""

    message: Message

    @property
    def arrays(self) -> Sequence[NDArray[Any]]:
        return self.message.arrays

    def check_parts(self, parts: Sequence[str]) -> None:
        if not self.message.head.keys() <= {"ask", *parts}:
            raise InputError(
                f"this message may hold {', '.join(parts) or 'nothing more'}; got more; nothing was asked"
            )

    def has(self, name: str) -> bool:
        return name in self.message.head

    def text(self, name: str) -> str:
        found = self.message.head.get(name)
        if not isinstance(found, str):
            raise InputError(f"a message must say {name!r}, as text; it does not; nothing was asked")
        return found

    def whole(self, name: str) -> int:
        found = self.message.head.get(name, 0)
        if type(found) is not int or not 0 <= found < 2**53:
            raise InputError(f"{name!r} must be a whole number from 0; it is not; nothing was asked")
        return found

    def flag(self, name: str) -> bool:
        found = self.message.head.get(name, False)
        if type(found) is not bool:
            raise InputError(f"{name!r} must be true or false; it is not; nothing was asked")
        return found

    def listed(self, name: str) -> list[Any]:
        found = self.message.head[name]
        if not isinstance(found, list) or not all(isinstance(one, list) for one in found):
            raise InputError(
                f"{name!r} must be a list of lists, one of each question; it is not; nothing was asked"
            )
        return found

    def stated(self, *names: str) -> dict[str, Any]:
        """Numbers that are stated; the guard checks them."""
        head = self.message.head
        return {name: head[name] for name in names if head.get(name) is not None}

    def name(self) -> str:
        return _checked_name(self.message.head.get("name", ""))

    def names(self, count: int) -> list[str] | None:
        found = self.message.head.get("names")
        if found is None:
            return None
        if not isinstance(found, list) or len(found) != count:
            raise InputError(f"'names' must be a list of {count}; it is not; nothing was asked")
        return [_checked_name(one) for one in found]


def _checked_name(name: object) -> str:
    """A name as the owner will read it, in a terminal or a spreadsheet.

    Raises
    ------
    InputError
        If it is not one printable line, or would be a formula there.
    """
    if (
        not isinstance(name, str)
        or len(name) > _MOST_NAME
        or unicodedata.normalize("NFKC", name)
        .lstrip()
        .startswith(tuple(_FORMULA))  # wide signs are some, too
        or any(unicodedata.category(one) in _UNSHOWN for one in name)
    ):
        raise InputError(
            f"a name must be one printable line of at most {_MOST_NAME} characters that does not begin with one of "
            f"{_FORMULA}; got another; nothing was asked and nothing was charged"
        )
    return name
