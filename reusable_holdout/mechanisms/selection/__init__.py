"""Selection: the best candidates, or the best synthetic database."""
