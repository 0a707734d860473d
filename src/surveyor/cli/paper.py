"""`surveyor paper`: the figures, tables and propositions of the paper."""

from surveyor.cli.studies import Command
from surveyor.paper.results import REGISTRY

DOES = "reproduce the paper, one result at a time"
WRITES = """\
Each writes data, a text table and, for figures, a picture. --quick takes minutes. A command that
was stopped continues when it is repeated; finished runs are not trained again."""
COMMAND = Command("paper", "result of the paper", DOES, WRITES, REGISTRY)
main = COMMAND.main
