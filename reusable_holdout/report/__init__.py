"""A report of a ledger: one HTML file for people, from what was released alone."""

from reusable_holdout.report.page import report_page

__all__ = ["report_page"]
