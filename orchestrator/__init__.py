"""Places kernels on GPUs: today the table by which bytes are exchanged, and the kernels that move them."""
