"""Real data that ships with the package; sources and licences are in ATTRIBUTION.md in this folder."""

from __future__ import annotations

from importlib.resources import as_file, files

from reusable_holdout.deferred import pandas as pd

__all__ = ["load_adult"]


def load_adult() -> tuple[pd.DataFrame, pd.Series]:
    """Load UCI Adult (census income): 14 features, and whether income exceeds 50,000 dollars.

    Missing categories are a category of their own, ``"?"``; exact duplicates are dropped, so that random parts are
    disjoint.

    Returns
    -------
    X : pandas.DataFrame of shape (32537, 14)
        6 numeric columns and 8 of text.
    y : pandas.Series of bool, shape (32537,)
        About 24% true.

    Examples
    --------
    >>> X, y = load_adult()
    >>> X.shape, round(y.mean(), 3)
    ((32537, 14), np.float64(0.241))
    """
    with as_file(files(__name__) / "adult.csv.gz") as path:
        frame = pd.read_csv(path)
    frame = frame.drop_duplicates(ignore_index=True)
    y = frame.pop("income") == ">50K"
    text = [str(name) for name in frame if not pd.api.types.is_numeric_dtype(frame[name])]
    frame[text] = frame[text].fillna("?").astype(str)
    return frame, y
