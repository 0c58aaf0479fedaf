"""Fleets: the driver and ``tessera.fleet`` read the same text, and make the same of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from softgpu.engine.service import protocol
from tessera.environment import PYTHON
from tessera.fleet import DEFAULT, Fleet, FleetError, parse_fleet
from tests.nodriver.driver.client import Done, run
from tests.nodriver.engine.services import Home, home_of_test

NO_DEVICE, INVALID_DEVICE, INVALID_VALUE = 100, 101, 1
EACH = """
def machine():
    result = cuda.cuInit(0)
    if result:
        return [result, None, None]
    count = value("cuDeviceGetCount", c_int)
    devices = [[attribute(75, d), attribute(16, d), value("cuDeviceTotalMem_v2", c_size_t, d)] for d in range(count)]
    return [0, devices, [[value("cuDeviceCanAccessPeer", c_int, a, b) for b in range(count)] for a in range(count)]]
def child(text):
    read, write = os.pipe()
    process = os.fork()
    if not process:
        os.dup2(write, 2)
        os.environ["SOFTGPU_DEVICES"] = text
        os.write(2, json.dumps(machine()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        *errors, found = pipe.read().split("\\n")
    assert os.waitpid(process, 0)[1] == 0
    return [*json.loads(found), errors]
"""

GOOD = (
    "A100", " h100-pcie , \tT4", "L40S,L40S,L40S", "A100-80G:memory_gib=24", "T4:memory_gib=0.001,T4:memory_gib=1.5e1",
    "A100 : name = big one : memory_gib = 4 , L40S:price_usd_h=0.79", "T4:memory_gib=16.0001,L4:memory_gib=2.3456789",
    "A100,L40S;from=A100-80G:to=L40S:bandwidth_gb_s=23.06",
    "T4:name=a,T4:name=b,T4;to=a:peer=true:from=b:bandwidth_gb_s=1",
    "T4,T4,L4;from=T4-1:to=L4:bandwidth_gb_s=1:latency_us=2:peer=true ; from=T4-0:to=T4-1:bandwidth_gb_s=.5:peer=false",
    "T4:name=L4-0,L4:name=T4", "T4:name=caf\u00e9", ",".join(["B200"] * 64),
)
BAD = {
    "T5": "device 0: no card is named 'T5'",
    "A100-80G,": "device 1: no card is named ''",
    "cuda:0": "device 0: no card is named 'cuda'",
    ",".join(["T4"] * 65): "names more than 64 devices",
    "T4:memory_gib": "device 0: 'memory_gib' is no KEY=VALUE; keys are memory_gib, name, price_usd_h",
    "T4:": "device 0: '' is no KEY=VALUE",
    "T4,T4:memory=4": "device 1: 'memory' is not known; there are memory_gib, name, price_usd_h",
    "T4:card=T4": "device 0: 'card' is not known",
    "T4:memory_gib=1:memory_gib=1": "device 0: memory_gib is there twice",
    "T4:memory_gib=17": "device 0: memory_gib=17; a T4 has 16",
    "T4:memory_gib=1e300": "device 0: memory_gib=1e300; a T4 has 16",
    "T4:memory_gib=1e-9": "memory_gib=1e-9: there must be a MiB at least",
    **{f"T4:memory_gib={word}": f"memory_gib={word} must be a number above 0"
       for word in ("", "0", "-1", "inf", "nan", "0x10", "1_5", "1e", "1e999", "5 5")},
    "T4:price_usd_h=free": "price_usd_h=free must be a number above 0",
    "T4:name=": "device 0: name= must be 1 to 63 bytes",
    "T4:name=a=b": "name=a=b must be 1 to 63 bytes without any of , ; : =",
    "T4:name=a\tb": "must be 1 to 63 bytes",
    f"T4:name={'x' * 64}": "must be 1 to 63 bytes",
    "T4:name=x,T4:name=x": "device 1: it is named x, as device 0 is",
    "T4,T4:name=T4-1,T4": "device 2: it is named T4-1, as device 1 is",
    "T4;": "link 0: '' is no KEY=VALUE; keys are bandwidth_gb_s, from, latency_us, peer, to",
    "T4,L4;from=T4:bandwidth_gb_s=1": "link 0: to is missing",
    "T4,L4;to=T4:bandwidth_gb_s=1": "link 0: from is missing",
    "T4,L4;from=T4:to=L5:bandwidth_gb_s=1": "link 0: to=L5: no device has that name",
    "T4,L4;from=T4:to=T4:bandwidth_gb_s=1": "link 0: it begins and ends at T4",
    "T4,L4;from=T4:to=L4": "link 0: bandwidth_gb_s is missing",
    "T4,L4;from=T4:to=L4:bandwidth_gb_s=x": "link 0: bandwidth_gb_s=x must be a number above 0",
    "T4,L4;from=T4:to=L4:bandwidth_gb_s=1:latency_us=-1": "latency_us=-1 must be a number above 0",
    "T4,L4;from=T4:to=L4:bandwidth_gb_s=1:peer=yes": "link 0: peer=yes must be true or false",
    "T4,L4;from=T4:to=L4:bandwidth_gb_s=1:speed=1": "link 0: 'speed' is not known",
    "T4,L4;from=T4:to=L4:bandwidth_gb_s=1;from=L4:to=T4:bandwidth_gb_s=1": "link 1: L4 and T4 have one already",
}


def told(fleet: Fleet) -> list[Any]:
    """What a program would be told."""
    devices = [[gpu.card.capability.version[0], gpu.card.sms, gpu.memory] for gpu in fleet.gpus if gpu.card]
    peers = [[int(a != b and fleet.link(a, b).peer) for b in range(len(devices))] for a in range(len(devices))]
    return [0, devices, peers, []]


def test_both_read_the_same() -> None:
    shown = run(EACH + f"show([child(text) for text in {GOOD!r}])").shown
    for text, found in zip(GOOD, shown, strict=True):
        assert found == told(parse_fleet(text)), text


def test_the_fleet_without_a_word() -> None:
    assert run(EACH + "show([*machine(), []])", None).shown == told(parse_fleet(DEFAULT))


def test_the_text_of_a_fleet_is_the_fleet() -> None:
    texts = [parse_fleet(text).text for text in GOOD]
    assert [parse_fleet(text) for text in texts] == [parse_fleet(text) for text in GOOD]
    shown = run(EACH + f"show([child(text) for text in {texts!r}])").shown
    assert shown == [told(parse_fleet(text)) for text in GOOD]
    assert texts[0] == "A100-80G" and texts[2] == "L40S,L40S,L40S"


def test_both_refuse_the_same_and_the_driver_says_why() -> None:
    shown = run(EACH + f"show([child(text) for text in {list(BAD)!r}])").shown
    for (text, message), (result, _, _, errors) in zip(BAD.items(), shown, strict=True):
        assert result == NO_DEVICE, text
        assert len(errors) == 1 and message in errors[0], (text, errors)
        if text != "cuda:0":
            with pytest.raises(FleetError):
                parse_fleet(text)


def test_a_number_has_a_point_in_every_language() -> None:
    shown = run("""
import locale
for name in ("de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"):
    try: locale.setlocale(locale.LC_ALL, name)
    except locale.Error: pass
cuda.cuInit(0)
show(value("cuDeviceTotalMem_v2", c_size_t, 0))
""", "T4:memory_gib=1.5").shown
    assert shown == 3 << 29


def test_what_is_between_devices() -> None:
    fleet = "T4,L4,A10;from=T4:to=L4:bandwidth_gb_s=1:peer=true"
    assert run("""
assert cuda.cuInit(0) == 0
number = c_int()
def between(which, a, b):
    return cuda.cuDeviceGetP2PAttribute(byref(number), which, a, b) or [number.value]
show([between(2, 0, 1), between(2, 1, 0), between(2, 0, 2), between(1, 0, 1), between(2, 0, 0), between(2, 0, 3),
      between(9, 0, 1), cuda.cuDeviceGetP2PAttribute(None, 2, 0, 1), cuda.cuDeviceCanAccessPeer(None, 0, 1),
      cuda.cuDeviceCanAccessPeer(byref(number), 0, 3), value("cuDeviceCanAccessPeer", c_int, 1, 1)])
""", fleet).shown == [[1], [1], [0], [0], INVALID_DEVICE, INVALID_DEVICE, INVALID_VALUE, INVALID_VALUE, INVALID_VALUE,
                      INVALID_DEVICE, 0]


FILE = """
[[gpu]]
name = "big, not small"
card = "A100-80G"
memory_gib = 24
[[gpu]]
card = "L40S"
[[link]]
from = "L40S"
to = "big, not small"
bandwidth_gb_s = 23.06
peer = true
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    yield from home_of_test(tmp_path, monkeypatch)


def started(home: Home, name: str | Path) -> Done:
    """A program that is told of a fleet's file, in that home, in its folder."""
    code = EACH + f"os.chdir({str(home.folder)!r})\nshow([*machine(), []])"
    return run(code, f"@{name}", **{PYTHON.name: str(home.python)})


def test_a_file(home: Home) -> None:
    file = home.folder / "a fleet.toml"
    file.write_text(FILE.replace(", not small", ""))
    expected = told(parse_fleet(f"@{file}"))
    assert expected[2] == [[0, 1], [1, 0]]
    assert started(home, file).shown == started(home, file.name).shown == expected
    file.write_text("[[gpu]]\ncard = 'T4'\n")
    assert started(home, file).shown == told(parse_fleet("T4")), "as it is now"


def test_files_that_cannot_be(home: Home) -> None:
    file, pipe = home.folder / "fleet.toml", home.folder / "pipe"
    os.mkfifo(pipe)
    texts = {
        FILE: "GPU 0: name = 'big, not small' must be", "[[gpu]": "is not TOML",
        "[[gpu]]\ncard = 'T5'": "GPU 0: no card is named 'T5'",
        "[[gpu]]\ncard = 'cuda:0'": "the software driver has no real GPUs, as cuda:0",
    }  # fmt: skip
    for text, message in texts.items():
        file.write_text(text)
        done = started(home, file.name)
        assert done.shown[0] == NO_DEVICE
        assert done.errors.startswith(f"softgpu: SOFTGPU_DEVICES=@fleet.toml: fleet file {file}")
        assert message in done.errors and done.errors.count("\n") == 1
    assert f"fleet file {pipe} is not a file" in started(home, pipe).errors
    assert "none.toml: No such file or directory" in started(home, "none.toml").errors
    assert "the path of the file is too long" in started(home, "x" * 5000).errors


def test_a_file_that_nobody_can_read(home: Home) -> None:
    home.interpreter("exit 3")
    done = started(home, "fleet.toml")
    assert done.shown[0] == NO_DEVICE
    assert "SOFTGPU_DEVICES=@fleet.toml: the compile service did not start" in done.errors


@pytest.mark.parametrize("path", [b"", b"relative", b"/" + b"x" * 5000, b"/x\0y"])
def test_hostile_requests_do_not_decode(path: bytes) -> None:
    with pytest.raises(protocol.ProtocolError, match="fleet file is not an absolute path"):
        protocol.decode(protocol.Kind.FLEET, bytes(32) + path)
    asked = protocol.FleetRequest(bytes(32), b"/x")
    assert protocol.decode(protocol.Kind.FLEET, asked.encode()) == asked
