"""Settings of all tests."""

import os

# test processes share few cores: threads that spin for each other make fits twenty times slower
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
