"""The paper as data: its figures, tables and propositions, each reproduced by one command."""
