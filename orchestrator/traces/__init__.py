"""Traces: what programs asked of their driver, in an SQLite file that people can query and Tessera can do again."""
