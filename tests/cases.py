"""Many small cases in one test, and a refusal in one line: what each would cost by itself is paid once."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import pytest

Refusal = TypeVar("Refusal", bound=BaseException)

__all__ = ["for_each", "refuses"]


def for_each(
    names: str | Sequence[str], cases: Iterable[Any], ids: Iterable[str] | Callable[[Any], Any] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each case, and fail with all cases that failed, each named and with its traceback.

    It is written like ``pytest.mark.parametrize``, and several multiply; but the cases share the test's fixtures, so it
    is for those that leave them as they were. A case that is skipped skips the rest.

    Parameters
    ----------
    names : str or sequence of str
        The arguments that a case gives: one name, or several.
    cases : iterable
        Values of the argument, or a tuple of values for each, or a ``pytest.param``.
    ids : iterable of str or callable, optional
        What the cases are called, or what to call a value; by default the values themselves.
    """
    wanted = [names] if isinstance(names, str) else list(names)
    listed = [_values(case, one=isinstance(names, str)) for case in cases]
    named = [None] * len(listed) if ids is None or callable(ids) else list(ids)
    assert listed, "no cases: the test would assert nothing"

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(test)
        def of_all(**fixtures: Any) -> None:
            failed = []
            for values, name in zip(listed, named, strict=True):
                given = dict(zip(wanted, values, strict=True))
                try:
                    test(**fixtures, **given)
                except (Exception, BaseExceptionGroup, pytest.fail.Exception) as error:
                    error.add_note(f"case: {name or _told(given, ids if callable(ids) else repr)}")
                    failed.append(error)
            if failed:
                raise BaseExceptionGroup(f"{len(failed)} of {len(listed)} cases failed", failed)

        signature = inspect.signature(test)
        left = [signature.parameters[name] for name in signature.parameters if name not in wanted]
        assert len(left) == len(signature.parameters) - len(wanted), f"{test} does not take {wanted}"
        of_all.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]  # what pytest reads
        return of_all

    return decorate


def refuses(
    error: type[Refusal] | tuple[type[Refusal], ...],
    words: str,
    call: Callable[..., Any],
    /,
    *given: Any,
    **named: Any,
) -> Refusal:
    """Check that a call raises this error, in these words, and return it: so a refusal is one line."""
    with pytest.raises(error, match=words or None) as caught:
        call(*given, **named)
    return caught.value


def _values(case: Any, *, one: bool) -> Sequence[Any]:
    if isinstance(case, type(pytest.param())):
        assert not case.marks, "a mark is for a test of its own"
        return case.values
    return (case,) if one else case


def _told(given: dict[str, Any], tell: Callable[[Any], Any]) -> str:
    """Names and values, each of one line's length at most."""
    return ", ".join(f"{name}={' '.join(str(tell(value)).split()):.120}" for name, value in given.items())
