"""The integer cores that a guard runs on, with the noise of `noise/` alone."""
