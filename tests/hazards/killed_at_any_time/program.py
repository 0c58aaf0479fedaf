"""Kills programs while they launch, at moments that differ; lets one live through it all."""

import subprocess
import sys
import time

program, steady, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
other = subprocess.Popen([steady])
for number in range(count):
    with subprocess.Popen([program], stdout=subprocess.PIPE) as victim:
        assert victim.stdout and victim.stdout.readline()
        time.sleep(number % 7 * 0.0007)
        victim.kill()
assert other.wait(20) == 0
