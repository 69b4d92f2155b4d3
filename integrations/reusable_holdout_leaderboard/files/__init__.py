"""Reading of files: labels from organisers, and submissions from teams, which are checked before the guard is asked."""
