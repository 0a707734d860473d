"""Strictness for all tests: shapes are checked at run time, ranks and types never promoted silently."""

import jax
from jaxtyping import install_import_hook

jax.config.update("jax_numpy_rank_promotion", "warn")
install_import_hook("surveyor", "beartype.beartype")
