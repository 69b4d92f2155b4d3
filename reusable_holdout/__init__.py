"""Keep a test set alive."""
