"""Exact discrete noise, keyed by the question, and exact random choices."""
