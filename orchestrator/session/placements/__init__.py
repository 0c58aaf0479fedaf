"""Placements that people can ask for: by rules, from a file, at random."""
