"""Private selection of the best candidates, or of the best synthetic database."""
