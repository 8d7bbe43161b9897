"""What the tests of the runtime share."""

import os

import pytest


@pytest.fixture(scope="module")
def quick_disk():
    """No waiting for the disk: no test sees what a sync does, and each takes milliseconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda descriptor: None)
        yield
