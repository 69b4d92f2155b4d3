"""The box: a guard in a process of another user, which answers over a Unix socket."""

from reusable_holdout_box.client import BoxHoldout, NoWallWarning
from reusable_holdout_box.folder import make_box, open_box
from reusable_holdout_box.remote import RemoteHoldout
from reusable_holdout_box.running import Limits, run_box

__all__ = ["BoxHoldout", "Limits", "NoWallWarning", "RemoteHoldout", "make_box", "open_box", "run_box"]
