"""`surveyor status`."""

from surveyor.cli.options import Positional, command


@command
def main(folder: Positional[str]) -> None:
    """Show the state of the runs in a folder: done, running, stopped, waiting or failed.

    Args:
        folder: The folder, or its URL.
    """
    from surveyor.runs import storage
    from surveyor.sweeps import status

    print("\n".join(status.lines(status.read_all(storage.at(folder)))))
