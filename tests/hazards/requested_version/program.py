"""Says which symbols of the library cuGetProcAddress gives for names, at a version: JSON in, JSON out."""

import ctypes
import json
import sys

names, version, flags = json.loads(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
cuda = ctypes.CDLL("libcuda.so.1")
libc = ctypes.CDLL(None)
newer = getattr(cuda, "cuGetProcAddress_v2", None)  # drivers before CUDA 12 have the older form alone


class Info(ctypes.Structure):
    _fields_ = [("file", ctypes.c_char_p), ("base", ctypes.c_void_p), ("symbol", ctypes.c_char_p),
                ("address", ctypes.c_void_p)]


found = {}
for name in names:
    address, info, status = ctypes.c_void_p(), Info(), ctypes.c_int(-1)
    wanted = (name.encode(), ctypes.byref(address), version, ctypes.c_uint64(flags))
    result = newer(*wanted, ctypes.byref(status)) if newer else cuda.cuGetProcAddress(*wanted)
    if result or not address.value:
        found[name] = [None, None]
    elif libc.dladdr(address, ctypes.byref(info)) and info.address == address.value:
        found[name] = [info.symbol.decode(), info.file.decode()]
    else:
        found[name] = ["", info.file.decode()]
print(json.dumps(found))
