"""Target charging: private calls of any kind, of which only those that hit a target are paid for."""
