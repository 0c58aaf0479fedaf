"""The command ``tessera``: one file per verb in ``commands``, one per output in ``reporters``.

The top layer: it may import every other package, and nothing imports it.
"""
