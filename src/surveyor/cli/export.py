"""`surveyor export`."""

import sys
from pathlib import Path

from surveyor.cli.options import Flag, Positional, command
from surveyor.errors import require, require_folder


@command
def main(
    folder: Positional[str],
    csv: Flag = False,
    json: Flag = False,
    metrics: Flag = False,
    out: Path | None = None,
) -> None:
    """Write the runs in a folder as a table: hyperparameters, state and result, a line for each.

    Args:
        folder: The folder, or its URL.
        csv: Write CSV with a header; unknown values are empty.
        json: Write JSON lines, an object for each run.
        metrics: Write all metrics instead, a line for each line of a run's metrics.
        out: The file to write; standard output by default.
    """
    require(csv != json, "surveyor export needs one format: --csv or --json.")
    require_folder(folder)
    from surveyor.sweeps import results

    table = results.results(folder, metrics=metrics)
    lines = (results.to_json(record) + "\n" for record in table)
    text = results.to_csv(table) if csv else "".join(lines)
    if out is None:
        print(text, end="")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, "utf-8", newline="")
    print(f"Written: {out}, {len(table)} records", file=sys.stderr)
