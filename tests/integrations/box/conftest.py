"""Boxes that run in a thread of the test's process."""

import contextlib

import numpy as np
import pandas as pd
import pytest
from box_servers import answering
from reusable_holdout_box import RemoteHoldout, make_box

ROWS = 600
LABELS = np.arange(ROWS) % 2
WISH = {"queries": 50, "charges": 5, "vacuous": True, "seed": 1}


@pytest.fixture
def boxed(tmp_path):
    """A function that makes a box with settings of its own, and gives its address."""
    with contextlib.ExitStack() as opened:

        def start(labels=LABELS, limits=None, judged=False, **wish):
            file = tmp_path / "rows.csv"
            frame = {"id": [f"r{k}" for k in range(len(labels))]} | ({} if judged else {"label": labels})
            pd.DataFrame(frame).to_csv(file, index=False)
            make_box(tmp_path / "box", **{"ids" if judged else "labels": file}, id_column="id", **WISH | wish)
            return opened.enter_context(answering(tmp_path / "box", **(limits or {})))

        yield start


@pytest.fixture
def remote(boxed):
    """A function that makes a box, and gives a remote guard of it."""
    with contextlib.ExitStack() as opened:
        yield lambda *args, **wish: opened.enter_context(
            RemoteHoldout(boxed(*args, **wish), patience_seconds=2.0)
        )
