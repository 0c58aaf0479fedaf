"""The preload library, which records what a program asks of its CUDA driver, and what reads its records."""
