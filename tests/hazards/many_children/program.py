"""Starts many programs that use no GPU, in several ways."""

import os
import subprocess
import sys

count = int(sys.argv[1])
for _ in range(count // 4):
    subprocess.run(["/bin/true"], check=True)  # vfork
    child = os.posix_spawn("/bin/true", ["true"], os.environ)
    assert os.waitpid(child, 0)[1] == 0
    child = os.fork()
    if child == 0:
        os.execv("/bin/true", ["true"])
    assert os.waitpid(child, 0)[1] == 0
    assert os.system("exec /bin/true") == 0
