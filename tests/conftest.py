"""Every annotated shape and type in surveyor is checked at run time while tests run."""

import os
import tempfile

import pytest
from jaxtyping import install_import_hook

install_import_hook("surveyor", "beartype.beartype")

# Many tests compile the same programs, in several processes.
os.environ.setdefault("SURVEYOR_CACHE", os.path.join(tempfile.gettempdir(), "surveyor-tests"))


@pytest.fixture(autouse=True, scope="session")
def snapshots_may_take_their_time():
    """Let no snapshot be skipped on a busy machine, since tests count them."""
    from surveyor.runs import recorder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "FREE_SECONDS", 600.0)
        yield
