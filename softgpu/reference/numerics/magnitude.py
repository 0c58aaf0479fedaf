"""min, max, abs, neg, copysign, testp: instructions that select or change bits and never round.

Source: PTX ISA, "Floating-Point Instructions" and "Half Precision Floating-Point Instructions" of those names.
``abs`` and ``neg`` change the sign bit only, of NaNs too (PTX leaves that NaN unspecified).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from softgpu.reference.numerics.formats import (
    FORMATS,
    PACKED,
    Array,
    Format,
    bits_of,
    canonical,
    flush,
    is_nan,
    lanewise,
)


def _operand(values: npt.ArrayLike, kind: str, ftz: bool) -> Array:
    return flush(values, kind) if ftz else bits_of(values, kind)


def _ordered(bits: Array, form: Format) -> Array:
    """A key whose unsigned order is that of the numbers, with -0 before +0."""
    scalar = bits.dtype.type
    negative = (bits & scalar(form.sign_mask)) != 0
    return np.where(negative, ~bits, bits | scalar(form.sign_mask))


def _select(
    larger: bool, a: npt.ArrayLike, b: npt.ArrayLike, kind: str, ftz: bool, nan: bool, xorsign_abs: bool
) -> Array:
    if kind in PACKED:
        element = PACKED[kind][0]
        return lanewise(lambda x, y: _select(larger, x, y, element, ftz, nan, xorsign_abs), kind, a, b)
    form = FORMATS[kind]
    x, y = _operand(a, kind, ftz), _operand(b, kind, ftz)
    scalar = x.dtype.type
    sign, magnitude = scalar(form.sign_mask), scalar(form.magnitude_mask)
    new_sign = (x ^ y) & sign
    if xorsign_abs:
        x, y = x & magnitude, y & magnitude
    first = (_ordered(x, form) > _ordered(y, form)) if larger else (_ordered(x, form) < _ordered(y, form))
    x_nan, y_nan = is_nan(x, form), is_nan(y, form)
    result = np.where(y_nan | (first & ~x_nan), x, y)
    if xorsign_abs:
        result = (result & magnitude) | new_sign
    invalid = (x_nan | y_nan) if nan else (x_nan & y_nan)
    return np.where(invalid, scalar(form.canonical_nan), result)


def fmin(
    a: npt.ArrayLike, b: npt.ArrayLike, kind: str, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
) -> Array:
    """The smaller operand, -0 < +0; the other one if one is NaN, unless ``nan``; NaN results are canonical."""
    return _select(False, a, b, kind, ftz, nan, xorsign_abs)


def fmax(
    a: npt.ArrayLike, b: npt.ArrayLike, kind: str, ftz: bool = False, nan: bool = False, xorsign_abs: bool = False
) -> Array:
    """The larger operand; see :func:`fmin`."""
    return _select(True, a, b, kind, ftz, nan, xorsign_abs)


def extreme_of_three(
    function: Callable[..., Array],
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    c: npt.ArrayLike,
    ftz: bool = False,
    nan: bool = False,
    magnitudes: bool = False,
) -> Array:
    """:func:`fmin` or :func:`fmax` of three f32 operands, of their absolute values with ``magnitudes``."""
    operands = [fabs(x, "f32") if magnitudes else bits_of(x, "f32") for x in (a, b, c)]
    return function(function(operands[0], operands[1], "f32", ftz, nan), operands[2], "f32", ftz, nan)


def fabs(a: npt.ArrayLike, kind: str, ftz: bool = False) -> Array:
    """Sign bit cleared."""
    if kind in PACKED:
        return lanewise(lambda x: fabs(x, PACKED[kind][0], ftz), kind, a)
    bits = _operand(a, kind, ftz)
    return np.asarray(bits & bits.dtype.type(FORMATS[kind].magnitude_mask))


def fneg(a: npt.ArrayLike, kind: str, ftz: bool = False) -> Array:
    """Sign bit inverted."""
    if kind in PACKED:
        return lanewise(lambda x: fneg(x, PACKED[kind][0], ftz), kind, a)
    bits = _operand(a, kind, ftz)
    return np.asarray(bits ^ bits.dtype.type(FORMATS[kind].sign_mask))


def copysign(a: npt.ArrayLike, b: npt.ArrayLike, kind: str) -> Array:
    """The magnitude of ``b`` with the sign of ``a`` (PTX's operand order, the reverse of C's)."""
    x, y = bits_of(a, kind), bits_of(b, kind)
    form, scalar = FORMATS[kind], x.dtype.type
    return np.asarray((x & scalar(form.sign_mask)) | (y & scalar(form.magnitude_mask)))


_TESTS: dict[str, Callable[[Array, Format], npt.NDArray[np.bool_]]] = {
    "finite": lambda m, form: m < form.infinity_bits,
    "infinite": lambda m, form: m == form.infinity_bits,
    "number": lambda m, form: m <= form.infinity_bits,
    "notanumber": lambda m, form: m > form.infinity_bits,
    "normal": lambda m, form: (m == 0) | ((m >= form.smallest_normal) & (m < form.infinity_bits)),
    "subnormal": lambda m, form: (m != 0) & (m < form.smallest_normal),
}

TESTP_KINDS = tuple(_TESTS)


def testp(a: npt.ArrayLike, test: str, kind: str) -> npt.NDArray[np.bool_]:
    """testp.``test``.``kind``; zero counts as normal. ``kind``: f32, f64."""
    form = FORMATS[kind]
    bits = bits_of(a, kind)
    return np.asarray(_TESTS[test](bits & bits.dtype.type(form.magnitude_mask), form))


testp.__test__ = False  # type: ignore[attr-defined]  # pytest would collect the name


def canonical_nan(a: npt.ArrayLike, kind: str) -> Array:
    """``a`` with every NaN replaced by the canonical one of its format."""
    return canonical(bits_of(a, kind), FORMATS[kind])
