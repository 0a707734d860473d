"""Every annotated shape and type in surveyor is checked at run time while tests run."""

from jaxtyping import install_import_hook

install_import_hook("surveyor", "beartype.beartype")
