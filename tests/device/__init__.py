"""Checks of a driver, real or software: each room that runs them says which by its fixture ``machine``."""
