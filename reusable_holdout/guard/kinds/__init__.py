"""The ways to ask; one file each, and `table` says which is asked when."""
