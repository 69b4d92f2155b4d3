"""What an agent is given instead of the test set: tools of the Model Context Protocol that ask a guard elsewhere."""

from reusable_holdout_box.mcp.server import make_server

__all__ = ["make_server"]
