"""`surveyor watch`."""

from pathlib import Path

from surveyor.cli.options import Positional, command
from surveyor.errors import require, require_folder


@command
def main(run: Positional[Path], port: int = 0) -> None:
    """Show the report's page while training goes on, at an address of this machine alone.

    Ctrl-C ends it; the run is not touched.

    Args:
        run: A run's folder, or a folder of runs.
        port: The port: by default one that is free.
    """
    require(0 <= port < 65536, f"port must be from 0 to 65535, not {port}.")
    require_folder(run)
    from surveyor.report import live

    live.serve(run, port)
