"""Run the command line: `python -m surveyor.cli`."""

from surveyor.cli import run

run()
