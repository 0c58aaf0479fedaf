"""What ``tessera doctor`` finds out, before anybody words it."""
