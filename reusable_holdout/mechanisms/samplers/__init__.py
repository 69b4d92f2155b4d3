"""Samplers of the mechanisms, besides `noise/`; no guard imports them."""
