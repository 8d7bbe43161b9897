"""``python -m dpsim``."""

from dpsim.cli.main import main

main()
