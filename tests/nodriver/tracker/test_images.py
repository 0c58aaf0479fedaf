"""What PTX is in an image, and for which device it is what runs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.session.images import MOST_ENTRIES, Image, Target, read, target_of
from tessera.packed import PackedImageError
from tessera.reasons import Reason
from tests.compilers import require_nvcc
from tests.nodriver.tracker.fatbins import (
    ALONE,
    CUBIN,
    FAMILY,
    LZ4,
    PTX,
    ZSTANDARD,
    container,
    cubin,
    entry,
    machine,
    ptx,
    text,
)

FOLDER = Path(__file__).resolve().parents[1] / "driver" / "images"
MODES = ("none", "size", "speed", "default")
NO_PTX = Reason.NO_PTX


def target(image: bytes, capability: int | None) -> str | Reason:
    """The target of the text that describes what runs on a device."""
    found = whole(image).chosen(capability)
    return found if isinstance(found, Reason) else found.text().split(".target ")[1].split()[0]


def whole(image: bytes) -> Image:
    found = read(image)
    assert found is not None
    return found


@pytest.mark.parametrize("mode", MODES)
def test_the_text_for_each_device(mode: str) -> None:
    image = (FOLDER / f"{mode}.fatbin").read_bytes()
    expected = {70: NO_PTX, 75: "sm_75", 80: "sm_80", 86: "sm_80", 89: "sm_80", 90: "sm_90a", 100: "sm_100f",
                103: "sm_100f", 120: "sm_80", None: NO_PTX}
    assert {capability: target(image, capability) for capability in expected} == expected


def test_texts_are_whole_in_each_packing() -> None:
    images = [whole((FOLDER / f"{mode}.fatbin").read_bytes()) for mode in MODES]
    texts = {tuple([part.text().strip("\n") for part in image.texts]) for image in images}
    assert len(texts) == 1
    assert all(one.startswith(".version 9.0") and one.endswith("}") for one in texts.pop())


SOURCE = 'extern "C" __global__ void k(int* y, int n) { if (threadIdx.x < n) y[threadIdx.x] = __CUDA_ARCH__; }\n'


@pytest.mark.parametrize("mode", ["default", *[pytest.param(mode, marks=pytest.mark.long) for mode in MODES[:-1]]])
def test_what_nvcc_makes(mode: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(SOURCE)
    made = {}
    for name, codes in {
        "both": ["arch=compute_80,code=[sm_86,compute_80]", "arch=compute_86,code=compute_86"],
        "other": ["arch=compute_80,code=sm_86", "arch=compute_86,code=compute_86"],
        "alone": ["arch=compute_90a,code=[sm_90a,compute_90a]"], "machine": ["arch=compute_80,code=sm_80"],
    }.items():
        command = [require_nvcc(), "-fatbin", f"--compress-mode={mode}", "k.cu", "-o", name]
        command += [word for code in codes for word in ("-gencode", code)]
        subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
        made[name] = (tmp_path / name).read_bytes()
    devices = (75, 80, 86, 89, 90)
    assert [target(made["both"], device) for device in devices] == [NO_PTX, "sm_80", "sm_80", "sm_80", "sm_86"]
    assert [target(made["other"], device) for device in devices] == [NO_PTX, NO_PTX, NO_PTX, NO_PTX, "sm_86"]
    assert [target(made["alone"], device) for device in (86, 90, 100)] == [NO_PTX, "sm_90a", NO_PTX]
    assert [target(made["machine"], device) for device in (80, 90)] == [NO_PTX, NO_PTX]


@pytest.mark.parametrize(("image", "capability", "expected"), [
    (text(90).encode(), 80, "sm_90"), (text(90).encode() + b"\0junk", None, "sm_90"), (cubin(80), 80, NO_PTX),
    (container(), 80, NO_PTX), (container(ptx(75), ptx(80), ptx(70)), 86, "sm_80"),
    (container(ptx(90), ptx(90, FAMILY), ptx(90, ALONE)), 90, "sm_90a"),
    (container(ptx(100), ptx(100, FAMILY)), 103, "sm_100f"), (container(ptx(100), ptx(100, FAMILY)), 110, "sm_100"),
    (container(ptx(103, FAMILY)), 100, NO_PTX), (container(ptx(80), ptx(80)), 80, NO_PTX),
    (container(machine(80, 80), ptx(80)), 80, "sm_80"), (container(machine(80, 80), ptx(80)), 86, "sm_80"),
    (container(machine(86, 80), ptx(80)), 80, "sm_80"), (container(machine(80, 75), ptx(80)), 80, NO_PTX),
    (container(machine(80, 75), ptx(80)), 90, "sm_80"), (container(machine(80, None), ptx(80)), 80, NO_PTX),
    (container(machine(80, 80), machine(86, 86), ptx(80)), 86, NO_PTX),
    (container(machine(80, 80), machine(86, 86), ptx(80)), 80, "sm_80"),
    (container(machine(86, 80), ptx(80), ptx(86)), 86, "sm_80"),
    (container(machine(90, 90, ALONE), ptx(90)), 90, NO_PTX),
    (container(machine(90, 90, ALONE), ptx(90, ALONE)), 90, "sm_90a"),
    (container(machine(90, 90, ALONE), ptx(90)), 100, "sm_90"),
    (container(entry(CUBIN, b"\x7fELF"), ptx(80)), 80, NO_PTX),
    (container(entry(CUBIN, cubin(80, version=3)), ptx(80)), 80, NO_PTX),
    (container(machine(75, 75)) + container(ptx(80)), 80, "sm_80"),
    (container(machine(80, 75)) + container(ptx(80)), 80, NO_PTX),
    (container(entry(8, b"other"), ptx(80)) + bytes(9), 80, "sm_80"),
])  # fmt: skip
def test_images_made_by_hand(image: bytes, capability: int | None, expected: str | Reason) -> None:
    assert target(image, capability) == expected


@pytest.mark.parametrize("image", [
    b"\x50\xed\x55\xba", container()[:-1], container(ptx(80))[:-1], container(ptx(80), version=2),
    container(ptx(80), header=8), container(ptx(80), header=60000), container(ptx(80), more=8),
    container(ptx(80), b"half"), container(entry(PTX, b"x", length=1 << 63)), container(entry(PTX, b"x", header=8)),
    container(entry(PTX, b"x", header=1 << 31)), container(ptx(80)) + container()[:-1],
    container(entry(PTX, b"packed", flags=LZ4, unpacked=9, length=5)), container() * (MOST_ENTRIES + 1),
    container(entry(PTX, b"") * (MOST_ENTRIES + 1)),
])  # fmt: skip
def test_damaged_images(image: bytes) -> None:
    assert read(image) is None


@pytest.mark.parametrize("flags", [LZ4, ZSTANDARD])
def test_damaged_packings(flags: int) -> None:
    for size in (1, 100, 1 << 20, 1 << 62):
        image = whole(container(entry(CUBIN, b"\xff" * 8, 80, flags, size), entry(PTX, b"\xff" * 8, 80, flags, size)))
        assert image.chosen(80) is NO_PTX
        with pytest.raises(PackedImageError):
            image.texts[0].text()


def test_packings_need_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("lz4.block", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    for mode in ("speed", "size"):
        for part in whole((FOLDER / f"{mode}.fatbin").read_bytes()).texts:
            with pytest.raises(PackedImageError, match="needs the package"):
                part.text()


@pytest.mark.parametrize(("name", "expected"), [
    ("sm_80", Target(80)), ("sm_90a", Target(90, "a")), ("sm_100f", Target(100, "f")), ("sm_", None), ("sm_a", None),
    ("compute_80", None), ("sm_80af", None), ("sm_8000", None), ("sm_8²", None), ("", None), ("sm_-80", None),
])  # fmt: skip
def test_targets(name: str, expected: Target | None) -> None:
    assert target_of(name) == expected


GOOD = container(machine(80, 80), ptx(80), ptx(90, ALONE), entry(PTX, b"packed", 75, ZSTANDARD, 100))


@given(st.lists(st.tuples(st.integers(0, len(GOOD) - 1), st.integers(0, 255)), max_size=4), st.integers(0, len(GOOD)))
@example([], len(GOOD))
def test_any_damage_is_taken(changes: list[tuple[int, int]], end: int) -> None:
    image = bytearray(GOOD)
    for place, value in changes:
        image[place] = value
    found = read(bytes(image[:end]))
    for capability in (70, 75, 80, 86, 90, None) if found else ():
        assert found is not None
        part = found.chosen(capability)
        if not isinstance(part, Reason):
            try:
                assert isinstance(part.text(), str)
            except PackedImageError:
                assert part.packing is not None
