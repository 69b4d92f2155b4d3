"""Parts of ``selecting_frequent_items.py``, the experiments of Lyu, Su and Li (2017)."""
