"""What XLA and OpenBLAS are told before they are loaded; what the user has told them stands."""

import ctypes
import os

# The QR and triangular solves of a d × d posterior are too small to be split over threads, and
# OpenBLAS's idle threads spin: two runs side by side are ten times slower with them.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# XLA dispatches the operations of a loop's body one by one, some 50 ns each, unless a pass touches
# fewer bytes than this (1 kB where nothing is said): then the loop is one function. An episode of a
# tabular agent is such a loop, and seven times faster so. And sums over a short last axis are
# slower in its library of kernels than in the loops of its own, which also fuse with what precedes.
for _flag in (
    "--xla_backend_extra_options=xla_cpu_small_while_loop_byte_threshold=8192",
    "--xla_cpu_experimental_ynn_fusion_type=-LIBRARY_FUSION_TYPE_REDUCE",
):
    if _flag.split("=")[0] not in os.environ.get("XLA_FLAGS", ""):
        os.environ["XLA_FLAGS"] = f"{_flag} {os.environ.get('XLA_FLAGS', '')}".strip()


def keep_memory() -> None:
    """Have glibc keep what is freed, where there is glibc.

    XLA takes a program's working memory anew at every call. Above 32 MB, which a gradient step on
    Atari needs, glibc gets it from the system and gives it back each time, and the page faults
    would be a third of the step.
    """
    mmap_max, trim_threshold = -4, -1
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, 2**31 - 1)
