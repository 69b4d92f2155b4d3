"""The client of a leaderboard: it asks the guard of a board on another machine, over HTTP."""
