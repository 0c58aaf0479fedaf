"""One file per output: plain results to text or JSON."""
