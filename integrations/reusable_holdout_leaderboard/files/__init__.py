"""Files of organisers and teams: labels, and submissions that are checked before the guard is asked."""
