"""Target charging: interactions of private calls of any kind, which pay only for calls that hit a target."""
