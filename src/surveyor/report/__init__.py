"""A look at runs in a browser: one self-contained page, or the same page live."""
