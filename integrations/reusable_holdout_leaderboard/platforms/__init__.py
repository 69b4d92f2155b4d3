"""Platforms that run competitions of their own, with a guard behind them."""
