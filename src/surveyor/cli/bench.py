"""`surveyor bench`: agents beside each other on the field's benchmarks."""

from surveyor.bench import REGISTRY
from surveyor.cli.studies import Command

WRITES = """\
Each trains every agent with several seeds on all cores, and writes a line for each run, a table
and a picture. --quick takes minutes. A command that was stopped continues when it is repeated;
runs that have ended are not trained again."""
COMMAND = Command("bench", "benchmark", "compare agents on one benchmark", WRITES, REGISTRY)
main = COMMAND.main
