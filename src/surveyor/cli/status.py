"""`surveyor status`."""

from surveyor.cli.options import Flag, Positional, command
from surveyor.errors import require_folder


@command
def main(folder: Positional[str], json: Flag = False) -> None:
    """Show the state of the runs in a folder: done, running, stopped, waiting or failed.

    Args:
        folder: The folder, or its URL.
        json: Print a list of JSON objects instead, one for each run with its hyperparameters and
            result, and nothing else on standard output.
    """
    require_folder(folder)
    from surveyor.runs import storage
    from surveyor.sweeps import results, status

    if json:
        print(results.to_json(results.results(folder)))
    else:
        print("\n".join(status.lines(status.read_all(storage.at(folder)))))
