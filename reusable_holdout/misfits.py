"""Messages for slips: arguments that a function does not take, and names that are nearly right.

Messages quote names only, never values, because an argument may be the holdout.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from reusable_holdout.errors import InputError

__all__ = ["closest", "misfit"]

# Groups of optional arguments, one of which is needed; an example shows the first if none is given.
_NEEDED_TOO = {"ReusableHoldout": ("tolerance", "charges", "policy")}
# Arguments that were removed, and the replacement for each.
_GONE = {
    "exam": "what the final said of rows that models had predicted before could be wrong; keep rows for a last look in "
    "another file, which no model reads before, and guard them by themselves"
}
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def misfit(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> InputError | None:
    """Return the error that says why a function does not take these arguments; None if it takes them."""
    signature = inspect.signature(function)
    with suppress(TypeError):
        signature.bind(*args, **kwargs)
        return None
    parameters = list(signature.parameters.values())
    name, nothing = function.__name__, "nothing was asked"
    if parameters and parameters[0].name in {"self", "cls"}:
        if not args or not hasattr(args[0], name):
            return InputError(
                f"{name} must be called on an object; it was called on the class; make one first; {nothing}"
            )
        if name in {"__init__", "__new__"}:
            made = args[0] if isinstance(args[0], type) else type(args[0])
            name, nothing = made.__name__, "nothing was made"
        parameters, args = parameters[1:], args[1:]
    return InputError(f"{_problem(name, parameters, args, kwargs)}; {nothing}")


def _problem(
    name: str, parameters: Sequence[inspect.Parameter], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    placed = [one.name for one in parameters if one.kind in _BY_POSITION]
    named = [one.name for one in parameters if one.kind is inspect.Parameter.KEYWORD_ONLY]
    kinds = {one.kind for one in parameters}
    unknown = [word for word in kwargs if word not in {*placed, *named}]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        if unknown[0] in _GONE and name in {"ReusableHoldout", "Plan"}:
            return f"{name} has no argument {unknown[0]!r} any more; {_GONE[unknown[0]]}"
        near = closest(unknown[0], [*placed, *named])
        advice = f"did you mean {near}=?" if near else f"it takes {_listed(placed, named)}"
        return f"{name} has no argument {unknown[0]!r}; {advice}"
    if len(args) > len(placed) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        example = _call(name, placed, named[: len(args) - len(placed)])
        return (
            f"{name} takes {_listed(placed, []) or 'nothing'} by position and the rest by name; got {len(args)} by "
            f"position; write {example}"
        )
    twice = [word for word in placed[: len(args)] if word in kwargs]
    if twice:
        return f"{name} takes each argument once; got {twice[0]} by position and by name; leave one out"
    given = {*placed[: len(args)], *kwargs}
    needed = [
        one.name
        for one in parameters
        if one.default is one.empty and one.kind in {*_BY_POSITION, inspect.Parameter.KEYWORD_ONLY}
    ]
    left_out = [f"{word}=" if word in named else word for word in needed if word not in given]
    one_of = _NEEDED_TOO.get(name, ())
    needed_too = one_of[:1] if kwargs.keys().isdisjoint(one_of) else ()
    shown = [word for word in named if word in needed or word in kwargs or word in needed_too]
    example = _call(name, [word for word in placed if word in needed], shown)
    return f"{name} needs {', '.join(left_out)}, which did not come; write {example}"


def _listed(placed: Sequence[str], named: Sequence[str]) -> str:
    return ", ".join([*placed, *(f"{word}=" for word in named)])


def _call(name: str, placed: Sequence[str], named: Sequence[str]) -> str:
    return f"{name}({', '.join([*placed, *(f'{word}=...' for word in named)])})"


def closest(word: str, words: Iterable[str]) -> str | None:
    """Return the word that was probably meant; None if none is near.

    >>> closest("tolerence", ["rows", "tolerance"]), closest("acc", ["jaccard", "accuracy"])
    ('tolerance', 'accuracy')
    """
    import difflib  # noqa: PLC0415 - for messages alone

    names = {one.lower(): one for one in words}
    shortened = [one for one in names if len(word) > 2 and one.startswith(word.lower())]
    found = difflib.get_close_matches(
        word.lower(), shortened or list(names), n=1, cutoff=0.0 if shortened else 0.6
    )
    return names[found[0]] if found else None
