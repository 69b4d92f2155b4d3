"""The board's database, and the records that come out of it."""
