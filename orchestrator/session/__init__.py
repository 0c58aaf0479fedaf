"""One program, as its records tell of it: what it launched, what that reads and writes, and where valid bytes are."""
