"""The preloaded library (``preload/``, C), the format of its records (``wire.h``), and the relay that reads them."""
