"""`python -m horsies`: the same as the command `horsies`."""

from horsies.cli.main import main

main()
