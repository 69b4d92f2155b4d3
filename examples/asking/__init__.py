"""Part of ``coverage.py``: how the submissions of an attack are put to a guard."""
