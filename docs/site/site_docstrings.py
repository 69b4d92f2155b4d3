"""What docstrings say in the manner of Sphinx, said as the site's Markdown has it."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

__all__ = ["Readable", "readable"]

_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] ", flags=re.MULTILINE)


def readable(text: str) -> str:
    """A docstring with code in place of roles, and a numbered list of references."""
    text = _ROLE.sub(r"`\1`", text)
    text = re.sub(r"\[(\d+)\]_", r"[\1]", text)
    return _REFERENCE.sub(r"\1\2. ", text)


class Readable(Extension):
    """Applies it to every docstring that is shown."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Called for each object when it was read."""
        if obj.docstring:
            obj.docstring.value = readable(obj.docstring.value)
