"""The box: a guard that runs as another user, so that the analyst cannot read the labels.

It answers questions at a Unix socket.
"""

from reusable_holdout_box.folder import make_box, open_box
from reusable_holdout_box.remote import RemoteHoldout
from reusable_holdout_box.server import Limits, run_box
from reusable_holdout_box.transport import NoWallWarning, Transport

__all__ = ["Limits", "NoWallWarning", "RemoteHoldout", "Transport", "make_box", "open_box", "run_box"]
