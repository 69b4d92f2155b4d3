"""What researchers' mechanisms draw with besides `noise/`; no guard imports it."""
