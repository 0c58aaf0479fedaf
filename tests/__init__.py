"""Tests, and what several of them share. Folders under ``nodriver`` are the tiers that need no driver and no GPU."""
