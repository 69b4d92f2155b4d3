"""Settings of all tests."""

import contextlib
import functools
import gc
import os
import shutil

import pytest
from children import fork_workers, fresh_workers
from hypothesis import settings
from long_tests import select
from servers import new_database, run_folder, shared, start_postgresql, stop_postgresql, why_no_postgresql

# test processes share few cores: threads that spin for each other make fits twenty times slower
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MPLBACKEND", "agg")
os.environ["REUSABLE_HOLDOUT_REGISTRY"] = "off"  # tests of it have one of their own

# thousands of small ledgers wait for the disk longer than for anything else; no test is about a loss of power
_MEMORY, _ROOM_BYTES = "/dev/shm", 4 << 30
if os.path.isdir(_MEMORY) and shutil.disk_usage(_MEMORY).free > _ROOM_BYTES:  # noqa: PTH112 - no path is needed
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)

# the first example loads what the others find loaded, and cores are shared: no test is about time
if settings.default.deadline is not None:  # the mutation run has a profile of its own
    settings.register_profile("untimed", deadline=None)
    settings.load_profile("untimed")

fork_workers()


def pytest_collection_modifyitems(config, items):
    """Long tests run when what they are about has changed."""
    select(config, items)


def pytest_collection_finish():
    """What has been imported and collected stays to the end: the garbage collector need not look at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", name="fresh_workers")
def _fresh_workers():
    """Joblib's workers begin as a user's do: with nothing imported."""
    with fresh_workers():
        yield


@pytest.fixture(scope="session")
def postgresql_server(tmp_path_factory):
    """URL of a PostgreSQL server that all tests of a run share; a test that needs it is skipped where there is none.

    With REQUIRE_POSTGRESQL set, as on CI, it fails.
    """
    missing = why_no_postgresql()
    if missing:
        (pytest.fail if os.environ.get("REQUIRE_POSTGRESQL") else pytest.skip)(missing)
    folder, start = run_folder(tmp_path_factory), functools.partial(start_postgresql, durable=False)
    with shared(folder, "postgresql", start, stop_postgresql) as server:
        yield server["url"]


@pytest.fixture
def server_url(postgresql_server):
    """URL of an empty database of this test's own."""
    return new_database(postgresql_server)


@pytest.fixture
def closed_at_the_end():
    """A function that takes what is to be closed when the test ends, and gives it back."""
    with contextlib.ExitStack() as opened:

        def take(one):
            opened.callback(one.close)
            return one

        yield take
