"""Launches of the kernels of the reference material's corpus, one file for each producer."""
