"""Every annotated shape and type in surveyor is checked at run time while tests run."""

import gc
import os
import tempfile

import pytest
from jaxtyping import install_import_hook

install_import_hook("surveyor", "beartype.beartype")

# Many tests compile the same programs, in several processes.
os.environ.setdefault("SURVEYOR_CACHE", os.path.join(tempfile.gettempdir(), "surveyor-tests"))

# Most tests compile a program to run it a few times, so a fifth of the time to compile is worth
# more than a program ten times as fast. Tests that train for long ask for `optimised`.
QUICK = (
    "--xla_backend_optimization_level=0",
    "--xla_cpu_use_fusion_emitters=false",
    "--xla_cpu_parallel_codegen_split_count=1",
)
os.environ["XLA_FLAGS"] = " ".join([*QUICK, os.environ.get("XLA_FLAGS", "")]).strip()

# Programs and their traces are millions of objects that stay: looking through all of them for
# garbage again and again takes a twentieth of the time.
gc.set_threshold(100_000, 50, 100)


@pytest.fixture
def optimised():
    """Compile as users do; for tests that run a program for longer than it takes to compile."""
    from jax._src import compiler

    from surveyor.training import episodes, functional

    def forget():
        episodes.compile_chunk.cache_clear()
        functional._programs.clear()

    quick = compiler.get_compile_options

    def fast(*args, **kwargs):
        options = quick(*args, **kwargs)
        debug = options.executable_build_options.debug_options
        debug.xla_backend_optimization_level = 3
        return options

    with pytest.MonkeyPatch.context() as patch:
        forget()
        patch.setattr(compiler, "get_compile_options", fast)
        yield
        forget()


@pytest.fixture(autouse=True, scope="session")
def snapshots_may_take_their_time():
    """Let no snapshot be skipped on a busy machine, since tests count them."""
    from surveyor.runs import recorder

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recorder, "FREE_SECONDS", 600.0)
        yield
