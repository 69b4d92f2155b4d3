"""A board asked from another machine: a guard whose answers come over HTTP."""
