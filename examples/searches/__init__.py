"""Parts of ``honest_search.py`` and ``guarded_choice.py``: rows and candidates, and whom an analyst can ask."""
