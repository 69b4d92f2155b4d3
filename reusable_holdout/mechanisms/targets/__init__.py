"""Target charging: private calls of any kind; only the calls that hit a target are paid for."""
