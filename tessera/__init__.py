"""What every part of Tessera shares: reasons, the exception root, exit codes."""
