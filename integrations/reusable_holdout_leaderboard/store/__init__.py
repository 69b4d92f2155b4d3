"""What is kept of competitions in the board's database, and the records that come out of it."""
