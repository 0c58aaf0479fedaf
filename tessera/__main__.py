"""``python -m tessera``: the command line without an installed script."""

from tessera.cli.app import main

main()
