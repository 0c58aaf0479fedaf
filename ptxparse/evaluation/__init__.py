"""Access programs evaluated for a launch: sums compiled to numbers, bounds, coverage, ranges."""
