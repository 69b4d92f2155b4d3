"""Parts of ``frequent_items.py``, the experiments of Lyu, Su and Li (2017)."""
