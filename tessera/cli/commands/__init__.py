"""One file per verb: its options, and which parts it calls."""
