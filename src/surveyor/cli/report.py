"""`surveyor report`."""

from pathlib import Path

from surveyor import report
from surveyor.cli.options import Flag, Positional, command
from surveyor.errors import require_folder


@command
def main(folder: Positional[str], out: Path | None = None, no_episode: Flag = False) -> None:
    """Write one HTML file that shows how runs learnt, what agents believed and how surely.

    It needs no network and opens from disk.

    Args:
        folder: A run's folder, or a folder of runs, such as that of a sweep, or its URL.
        out: Where it goes: by default report.html in the folder.
        no_episode: Do not play an episode where observations are images.
    """
    require_folder(folder)
    print(f"The report is {report.write(folder, out, episodes=not no_episode)}")
