"""What takes the records of programs: sessions, traces, and later decisions."""
