"""Results of the runs in a folder as one table: a list of records, for pandas, CSV and JSON.

Records are made from the files of a run as data. Nothing is loaded, so that runs of other versions,
or of agents and environments that are not installed, are read like all others.
"""

import csv
import io
import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from surveyor import agents
from surveyor.errors import imported
from surveyor.runs import storage
from surveyor.runs.folder import Record, RunFolder
from surveyor.runs.run import RECENT
from surveyor.runs.storage import Storage
from surveyor.sweeps import status
from surveyor.sweeps.status import number

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any  # pandas is optional

IDENTITY = ("name", "label", "env", "agent", "seed")
"""Columns that say which run a record belongs to."""
OUTCOME = ("solved_at", "first_success", "return", "episodes", "steps", "gradient_steps", "seconds")
COLUMNS = (
    *IDENTITY, "state", "reason", "budget", "unit", "progress", *OUTCOME,
    "test_return", "evaluations", "best_evaluation", "last_evaluation", "path", "commit",
)  # fmt: skip
"""Columns of every run, None where a value is unknown."""
TIMES = ("episode", "step")
SINGULAR = {"returns": "return", "lengths": "length"}
"""Metrics that list all episodes of a test interval, by the name of their mean."""


class Results(list[Record]):
    """A list of records, one plain dictionary per run or per line of metrics."""

    @property
    def columns(self) -> list[str]:
        """Names of all values in any record: those of every run first, the others sorted."""
        found = {name for record in self for name in record}
        first = [name for name in (*IDENTITY, *TIMES, *COLUMNS) if name in found]
        return list(dict.fromkeys([*first, *sorted(found)]))

    def to_pandas(self) -> DataFrame:
        """Return the table as a pandas data frame; raise `SurveyorError` without pandas."""
        pandas = imported("pandas", "pandas", "pandas", "A data frame")
        return pandas.DataFrame(list(self), columns=self.columns)

    def __repr__(self) -> str:
        return f"<{len(self)} records with {len(self.columns)} columns>"


def results(path: str | Path, *, metrics: bool = False) -> Results:
    """Return the runs in a folder as a table: a list with one dictionary per run.

    **Arguments:**

    - `path`: the folder, or its URL. Raise `SurveyorError` if there are no runs in it.
    - `metrics`: return one record per line of every run's metrics instead.

    A run's record has its state, its result and its progress; every hyperparameter as
    `agent.<name>`; and the versions that made it as `versions.<package>`. `to_pandas()` of the
    table is a data frame.
    """
    where = storage.at(path)
    with where.mirrored() as folder:
        names = status.names(folder, where)
        if metrics:
            rows = (row for name in names for row in _lines(folder / name, names[name]))
            return Results(rows)
        return Results(_record(folder, name, label, where) for name, label in names.items())


def _record(folder: Path, name: str, label: str | None, where: Storage) -> Record:
    """Return the record of one run; of a run that cannot be read, what is known."""
    known: Record = dict.fromkeys(COLUMNS)
    try:
        run = RunFolder(folder / name)
        content, result = run.config_content() or {}, run.result() or {}
        known |= _identity(name, label, content)
        known["state"], known["reason"] = status.state_of(folder, name, where)
        if known["state"] == "failed" and known["reason"] is None:
            known["reason"] = "Its config.json is damaged."
        known |= _latest(run, content, result)
        known |= _evaluations(run.evaluations()) | _settings(content)
        known |= {key: result[key] for key in result if key in OUTCOME or key not in COLUMNS}
    except (OSError, RecursionError) as error:
        identity = _identity(name, label, {}) if known["name"] is None else {}
        known |= {**identity, "state": "failed", "reason": f"It cannot be read: {error}."}
    return {**known, "path": f"{where}/{name}"}


def _identity(name: str, label: str | None, content: Record) -> Record:
    """Return the columns of `IDENTITY`; an agent without label is called by its title."""
    agent = content.get("agent")
    entry = agents.REGISTRY.get(agent) if isinstance(agent, str) else None
    label = label or (agent if entry is None else entry.title)
    return {"name": name, "label": label, **{key: content.get(key) for key in IDENTITY[2:]}}


def _latest(run: RunFolder, content: Record, result: Record) -> Record:
    """Return budget and progress, counts and newest returns of a run from its last metrics."""
    rows: list[Record] = []
    earned: list[float] = []
    for row in map(_row, run.newest_metrics()):
        rows.append(row)
        earned += [] if (value := number(row.get("return"))) is None else [value]
        if len(earned) == RECENT:
            break
    last = rows[0] if rows else {}
    tests = (row["test_return"] for row in rows if number(row.get("test_return")) is not None)
    unit = next((unit for unit in ("steps", "episodes") if unit in content), None)
    return {
        "budget": None if unit is None else content[unit],
        "unit": unit,
        "progress": None if unit is None else status.progress(result, last),
        "return": fmean(earned) if earned else None,
        "episodes": last.get("episodes", last.get("episode")),
        "steps": last.get("step"),
        "test_return": next(tests, None),
    }


def _evaluations(records: list[Record]) -> Record:
    """Return the number of greedy evaluations, and the best and the last mean return."""
    found = [number(record.get("mean_return")) for record in records]
    known = [value for value in found if value is not None]
    if not known:
        return {}
    best, last = max(known), known[-1]
    return {"evaluations": len(known), "best_evaluation": best, "last_evaluation": last}


def _settings(content: Record) -> Record:
    """Return hyperparameters, versions and all else in config.json, as one flat dictionary."""
    skipped = (*COLUMNS, "hyperparameters")
    rest = {key: value for key, value in content.items() if key not in skipped}
    found = _flat({"agent": content.get("hyperparameters"), **rest})
    commit = content.get("commit")
    return {**{key: found[key] for key in found if key not in COLUMNS}, "commit": commit}


def _flat(values: Record, prefix: str = "") -> Record:
    """Return nested dictionaries as one, with names joined by dots."""
    found: Record = {}
    for key, value in values.items():
        if isinstance(value, dict) and value.keys() >= {"module", "name", "weights"}:
            value = value["name"]  # of a user's own module
        inner = isinstance(value, dict)
        found |= _flat(value, f"{prefix}{key}.") if inner else {prefix + key: value}
    return found


def _lines(path: Path, label: str | None) -> Iterable[Record]:
    """Return a run's metrics, each with the columns of `IDENTITY`; none if they are unreadable."""
    try:
        run = RunFolder(path)
        records, _ = run.read_metrics(skip=True)
        identity = _identity(path.name, label, run.config_content() or {})
    except (OSError, RecursionError):
        return []
    return ({**identity, **_row(record), **identity} for record in records)


def _row(record: Record) -> Record:
    """Return a metrics record with lists replaced by the means of their numbers."""
    row: Record = {}
    for name, value in _flat(record).items():
        if isinstance(value, list):
            known = [found for found in map(number, value) if found is not None]
            row[SINGULAR.get(name, name)] = fmean(known) if known else None
        else:
            row[name] = value
    return row


def to_csv(table: Results) -> str:
    """Return a table as CSV (RFC 4180) with a header; unknown values are empty."""
    file, columns = io.StringIO(newline=""), table.columns
    writer = csv.writer(file)
    writer.writerow(map(_cell, columns))
    writer.writerows([_cell(record.get(name)) for name in columns] for record in table)
    return file.getvalue()


def _cell(value: Any) -> Any:
    """Return a value for CSV: lists as JSON, and text that UTF-8 can hold."""
    if isinstance(value, list | dict):
        return json.dumps(value)
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def to_json(value: Record | Sequence[Record]) -> str:
    """Return a record or a table as JSON in one line; numbers that are not finite are null."""
    return json.dumps(_finite(value), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
