"""Parts of ``pate_labelling.py``: teachers who vote, ways to ask for their label, and a student."""
