"""The board's database, and the records that are read from it."""
