"""Random PTX kernels, launched in the interpreter against what the analysis says of them.

``kernel.generate(seed)`` gives the same PTX text for the same seed on every machine; ``launches.cases`` random
launches of it; ``examine.examine`` runs them and returns what was violated; ``reduce.reduce`` makes a failing text
smaller.
"""
