"""Software GPU."""
