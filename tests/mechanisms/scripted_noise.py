"""Noise that a test lists, draw by draw, in place of keyed noise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from reusable_holdout.noise.keyed import NoiseLaw

__all__ = ["ScriptedNoise", "spent"]


class ScriptedNoise:
    """Noise read from a table by label and question; a draw that is not listed is an error."""

    def __init__(self, script: Mapping[tuple[str, bytes], int]) -> None:
        self.script = script

    def draw(self, law: NoiseLaw, *, label: str, question: bytes) -> int:
        """Look up a draw; a threshold's by the charges it follows, whatever was charged."""
        return self.script[label, question[:8] if label == "threshold" else question]

    def draw_many(self, law: NoiseLaw, *, label: str, questions: Sequence[bytes]) -> np.ndarray:
        return np.array([self.script[label, question] for question in questions], dtype=np.int64)


def spent(charges: int) -> bytes:
    """Question under which the threshold's noise after so many charges is drawn."""
    return charges.to_bytes(8, "big")
