"""What organisers and teams bring as files: labels, and submissions that are checked before anything is asked."""
