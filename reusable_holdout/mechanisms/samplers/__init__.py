"""Samplers that the mechanisms need in addition to :mod:`reusable_holdout.noise`; guards do not use them."""
