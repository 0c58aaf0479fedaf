"""The software CUDA driver, ``libcuda.so.1``: C sources, and what generates their tables."""
