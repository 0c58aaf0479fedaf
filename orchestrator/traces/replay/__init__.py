"""Does again what a trace holds: ``parent`` starts a process with a driver in it, in which ``player`` works."""
