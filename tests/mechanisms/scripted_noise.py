"""Noise that a test lists, draw by draw, in place of keyed noise."""

import numpy as np

__all__ = ["ScriptedNoise", "spent"]


class ScriptedNoise:
    """Noise read from a table by label and question; a draw that is not listed is an error."""

    def __init__(self, script):
        self.script = script

    def draw(self, law, *, label, question):
        """Look up a draw; a threshold's by the charges it follows, whatever was charged."""
        return self.script[label, question[:8] if label == "threshold" else question]

    def draw_many(self, law, *, label, questions):
        return np.array([self.script[label, question] for question in questions], dtype=np.int64)


def spent(charges):
    """Return the question under which the threshold's noise after so many charges is drawn."""
    return charges.to_bytes(8, "big")
