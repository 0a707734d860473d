"""Settings of XLA and OpenBLAS, made before they are loaded; the user's own settings win."""

import contextlib
import ctypes
import os

# QR and triangular solves of a d × d posterior are too small for threads, and the idle threads of
# OpenBLAS spin: they make two runs side by side ten times slower.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# XLA dispatches the operations in a loop body one by one, at about 50 ns each, unless an iteration
# touches fewer bytes than this threshold (1 kB by default); then it compiles the loop as one
# function. An episode of a tabular agent is such a loop, and seven times faster this way.
# Reductions over a short last axis are slower in XLA's kernel library than in its own loops, which
# also fuse with the preceding operations.
for _flag in (
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=8192",
    "--xla_cpu_experimental_ynn_fusion_type=-LIBRARY_FUSION_TYPE_REDUCE",
):
    if _flag.split("=")[0] not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{_flag} {os.environ.get('XLA_FLAGS', '')}".strip()


def keep_memory() -> None:
    """Make glibc, if present, keep freed memory instead of returning it to the system.

    XLA allocates a program's working memory at every call. Above 32 MB, which a gradient step on
    Atari needs, glibc would map and unmap it each time; page faults would take a third of the step.
    """
    mmap_max, trim_threshold = -4, -1
    with contextlib.suppress(AttributeError, OSError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(mmap_max, 0)
        mallopt(trim_threshold, 2**31 - 1)
