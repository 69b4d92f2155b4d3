"""The board from elsewhere: a guard that asks a server over HTTP."""
