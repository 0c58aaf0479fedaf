"""Initialisation and devices: what programs are told of the machine."""

from __future__ import annotations

import pytest

from tessera.cards import cards
from tests.nodriver.driver.client import run

NOT_INITIALIZED, NO_DEVICE, INVALID_DEVICE, INVALID_VALUE = 3, 100, 101, 1
DESCRIBE = """
assert cuda.cuInit(0) == 0
def name(device):
    text = create_string_buffer(100)
    assert cuda.cuDeviceGetName(text, 100, device) == 0
    return text.value.decode()
show([[name(d), value("cuDeviceTotalMem_v2", c_size_t, d), attribute(75, d), attribute(76, d), attribute(16, d),
       attribute(13, d), attribute(36, d), attribute(37, d), attribute(97, d), attribute(38, d)]
      for d in range(value("cuDeviceGetCount", c_int))])
"""


def test_every_card_is_told_as_the_table_has_it() -> None:
    for first in range(0, len(cards()), 6):
        chosen = cards()[first:first + 6]
        shown = run(DESCRIBE, ", ".join(card.name.lower() for card in chosen)).shown
        assert len(shown) == len(chosen)
        for found, card in zip(shown, chosen, strict=True):
            assert found[:5] == [card.full_name, card.memory, *card.capability.version, card.sms]
            assert found[5] == 1000 * card.clock_mhz
            assert 2 * found[6] * 1000 * found[7] / 8 == pytest.approx(card.figure("bandwidth_gb_s") * 1e9, rel=1e-4)
            assert found[8:] == [card.capability.shared_per_block, card.l2_bytes]


def test_the_fleet_without_a_word() -> None:
    assert [row[0] for row in run(DESCRIBE, None).shown] == ["NVIDIA A100 80GB PCIe", "NVIDIA L40S"]


@pytest.mark.parametrize(("devices", "message"), [
    ("A100-80G,T5", "device 1: no card is named 'T5'; docs/fleets.md has the list"),
    ("A100-80G,", "device 1: no card is named ''"),
    (",".join(["T4"] * 65), "names more than 64 devices"),
])
def test_machines_that_cannot_be(devices: str, message: str) -> None:
    done = run("show([cuda.cuInit(0), value('cuDeviceGetCount', c_int)])", devices)
    assert done.shown == [NO_DEVICE, NOT_INITIALIZED]
    assert message in done.errors and done.errors.count("\n") == 1


def test_before_and_after_initialisation() -> None:
    shown = run("""
before = [cuda.cuDeviceGet(byref(c_int()), 0), cuda.cuDeviceGetCount(byref(c_int())), cuda.cuInit(1)]
show([before, cuda.cuInit(0), cuda.cuInit(0), value("cuDeviceGet", c_int, 1), cuda.cuDeviceGet(byref(c_int()), 2),
      cuda.cuDeviceGet(byref(c_int()), -1), cuda.cuDeviceGetCount(None)])
""").shown
    assert shown[0] == [NOT_INITIALIZED, NOT_INITIALIZED, INVALID_VALUE]
    assert shown[1:] == [0, 0, 1, INVALID_DEVICE, INVALID_DEVICE, INVALID_VALUE]


def test_children_of_a_fork_start_anew_or_not_at_all() -> None:
    """A real driver does not go on in them either."""
    assert run("""
assert cuda.cuInit(0) == 0
child = os.fork()
if not child:
    os._exit(10 * cuda.cuDeviceGetCount(byref(c_int())) + cuda.cuInit(0))
show(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""").shown == 10 * NOT_INITIALIZED + NOT_INITIALIZED


def test_places_on_the_bus_and_identities() -> None:
    shown = run("""
assert cuda.cuInit(0) == 0
def bus(device):
    text = create_string_buffer(13)
    assert cuda.cuDeviceGetPCIBusId(text, 13, device) == 0
    return text.value.decode()
def by_bus(text):
    return value("cuDeviceGetByPCIBusId", c_int, text.encode())
def identity(device):
    text = create_string_buffer(16)
    assert cuda.cuDeviceGetUuid_v2(text, device) == 0
    return text.raw.hex()
show([bus(0), bus(1), by_bus(bus(0)), by_bus(bus(1)), by_bus(bus(1)[:-2]),
      cuda.cuDeviceGetByPCIBusId(byref(c_int()), b"x"), cuda.cuDeviceGetByPCIBusId(byref(c_int()), b"0000:01:00.0"),
      attribute(33, 1), attribute(50, 1), cuda.cuDeviceGetPCIBusId(create_string_buffer(5), 5, 0),
      len({identity(0), identity(1)})])
""").shown
    assert shown[2:5] == [0, 1, 1] and shown[5:7] == [INVALID_VALUE, INVALID_DEVICE]
    assert shown[1] == f"{shown[8]:04x}:{shown[7]:02x}:00.0"
    assert shown[9:] == [INVALID_VALUE, 2]


def test_attributes_are_numbers_or_refused() -> None:
    shown = run("""
assert cuda.cuInit(0) == 0
number = c_int()
show([[cuda.cuDeviceGetAttribute(byref(number), a, 0), number.value] for a in range(160)])
""").shown
    known = [number for number, (result, _) in enumerate(shown) if result == 0]
    assert known == list(range(1, 148))
    assert shown[0][0] == shown[148][0] == INVALID_VALUE
    assert shown[10][1] == 32 and shown[1][1] == 1024 and shown[95][1] == 1 and shown[115][1] == 1


def test_versions() -> None:
    assert run("show(value('cuDriverGetVersion', c_int))").shown == 13000
    assert run("show(value('cuDriverGetVersion', c_int))", SOFTGPU_DRIVER_VERSION="12040").shown == 12040
    done = run("show(value('cuDriverGetVersion', c_int))", SOFTGPU_DRIVER_VERSION="12.4")
    assert done.shown == 13000 and "SOFTGPU_DRIVER_VERSION=12.4 is no version as in 12040" in done.errors


def test_names_and_texts_of_results() -> None:
    shown = run("""
def text(function, number):
    found = c_char_p(b"x")
    return [getattr(cuda, function)(number, byref(found)), found.value and found.value.decode()]
show([[text("cuGetErrorName", n), text("cuGetErrorString", n)] for n in (0, 2, 700, 12345)])
""").shown
    assert shown == [
        [[0, "CUDA_SUCCESS"], [0, "no error"]], [[0, "CUDA_ERROR_OUT_OF_MEMORY"], [0, "out of memory"]],
        [[0, "CUDA_ERROR_ILLEGAL_ADDRESS"], [0, "illegal address"]], [[INVALID_VALUE, None], [INVALID_VALUE, None]],
    ]
