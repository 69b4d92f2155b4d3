"""The demo on real data: a search that overfits a plain holdout, and does not overfit a guarded one."""

from reusable_holdout.demo.demo import DemoResult, run_demo

__all__ = ["DemoResult", "run_demo"]
