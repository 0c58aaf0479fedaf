"""What the engine writes is IR that LLVM's verifier accepts, dominance of every use included, which its parser does not
check. (A value used where it is not computed would not fail; it would be garbage.)"""

from __future__ import annotations

from itertools import product

import llvmlite.binding as llvm
import pytest

from ptxparse.parser import parse
from softgpu.engine.errors import UnsupportedKernel
from softgpu.engine.kernel import translate
from softgpu.engine.options import Options
from softgpu.engine.target import TARGETS, host_target
from tests.launches.catalog import all_kernels
from tests.launches.place import entry_of, text_of
from tests.launches.registry import KernelLaunches


def _options(kernel: KernelLaunches, thorough: bool) -> list[Options]:
    (case,) = kernel.first(1, seed=1)
    block = (*case.block, 1, 1)
    fixed = (block[0], block[1], block[2])
    if not thorough:
        return [Options(fixed)]
    return [Options(fixed), Options(fixed, rounding=1), Options(fixed, counts=True, logs=True), Options(None)]


@pytest.mark.parametrize("kernel", all_kernels(), ids=lambda kernel: kernel.name)
def test_every_kernel_is_verified(kernel: KernelLaunches, long_run: bool) -> None:
    module = parse(text_of(kernel))
    entry = module.function(entry_of(kernel).name)
    assert entry is not None
    for options, target in product(_options(kernel, long_run), TARGETS if long_run else (host_target(),)):
        try:
            text = translate(module, entry, options, target).text
        except UnsupportedKernel as refusal:
            pytest.skip(str(refusal))
        llvm.parse_assembly(text, llvm.create_context()).verify()
