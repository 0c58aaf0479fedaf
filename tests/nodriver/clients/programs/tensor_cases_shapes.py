"""More cases: reductions, matrix products, convolutions, indexing, sorting, random numbers."""

from __future__ import annotations

import numpy as np
from tensor_cases import CLEAR, X, Y, both, case, counts, numbers, softmax
from tinygrad import Device, Tensor, dtypes, nn
from tinygrad.helpers import Context

T = numbers("t", 6, 7, 8, 9)


def second() -> str:
    return f"{Device.DEFAULT}:1"


def both_devices() -> tuple[str, str]:
    return (Device.DEFAULT, second())



# Reductions.
both("sums over axes", lambda t: [t.sum(), t.sum(0), t.sum((1, 3)), t.sum(-1, keepdim=True), t.mean((0, 2))],
     lambda t: [t.sum(), t.sum(0), t.sum((1, 3)), t.sum(-1, keepdims=True), t.mean((0, 2))], T, loose=4)
both("greatest and least", lambda t: [t.max(), t.max((1, 2)), t.min(3), t.argmax(), t.argmax(2), t.argmin(1)],
     lambda t: [t.max(), t.max((1, 2)), t.min(3), t.argmax(), t.argmax(2), t.argmin(1)], T)
both("spread", lambda t: [t.var(1), t.std((2, 3)), t.var(correction=0)],
     lambda t: [t.var(1, ddof=1), t.std((2, 3), ddof=1), t.var()], T, loose=8)
both("products and norms", lambda t: [t[:, :, 0, :5].prod(-1), t.square().sum(-1).sqrt(), t.normalize(dim=-1)],
     lambda t: [t[:, :, 0, :5].prod(-1), np.sqrt((t * t).sum(-1)), t / np.sqrt((t * t).sum(-1, keepdims=True))], T, loose=4)
both("all and any", lambda x: [(x > 2).any(1), (x > -2).all(0), (x > 9).any(), (x < 9).all()],
     lambda x: [(x > 2).any(1), (x > -2).all(0), (x > 9).any(), (x < 9).all()], X)
both("one long sum", lambda x: [x.sum(), x.max(), x.square().mean()], lambda x: [x.sum(dtype=np.float64), x.max(),
     np.square(x).mean(dtype=np.float64)], np.abs(numbers("long", 1 << 18)), loose=20)
both("running sums", lambda x: [x.cumsum(1), x.cumsum(0), x.cumprod(1)[:, :5], x.cummax(1)[0]],
     lambda x: [x.cumsum(1), x.cumsum(0), x.cumprod(1)[:, :5], np.maximum.accumulate(x, 1)], X, loose=20)
both("softmax", lambda x: [x.softmax(), x.log_softmax(0), x.logsumexp(1)],
     lambda x: [softmax(x), np.log(softmax(x, 0)), np.log(np.exp(x).sum(1))], X, loose=4)
both("layer and group norm", lambda t: [t.layernorm(), nn.GroupNorm(7, 7)(t), nn.RMSNorm(9)(t)], None, T, loose=8)
both("batch norm", lambda t: t.batchnorm(None, None, t.mean((0, 2, 3)), (t.var((0, 2, 3)) + 1e-5).rsqrt()), None, T, loose=8)

# Matrix products.
A, B = numbers("A", 96, 64), numbers("B", 64, 80)
both("matrix product", lambda a, b: [a @ b, a @ b[:, 0], (a[0] @ b)], lambda a, b: [a @ b, a @ b[:, 0], a[0] @ b], A, B, loose=8)
both("matrix product of odd shape", lambda a, b: a[:61, :37] @ b[:37, :13], lambda a, b: a[:61, :37] @ b[:37, :13], A, B, loose=8)
both("batched matrix products", lambda a, b: a @ b, lambda a, b: a @ b,
     numbers("batched", 3, 4, 17, 33), numbers("batches", 3, 4, 33, 19), loose=8)
both("matrix product of doubles", lambda a, b: a.double() @ b.double(), lambda a, b: a.astype(np.float64) @ b, A, B, loose=8)
both("matrix product of integers", lambda a, b: a @ b, lambda a, b: a @ b, counts("i", -9, 9, 33, 41), counts("j", -9, 9, 41, 17))
both("matrix product of bytes", lambda a, b: a.cast(dtypes.int8).int() @ b.cast(dtypes.int8).int(),
     lambda a, b: a @ b, counts("bytes", -99, 99, 32, 64), counts("octets", -99, 99, 64, 16))


def rounded(x: np.ndarray, bits: int, least: int) -> np.ndarray:
    """The nearest numbers of a narrower type: bits of its fraction, its least exponent."""
    step = np.ldexp(np.float32(1), np.maximum(np.frexp(x)[1] - 1, least) - bits)
    return np.round(x / step) * step


P, Q = numbers("P", 128, 96), numbers("Q", 96, 64)
both("halves on tensor cores", lambda p, q: p.half().matmul(q.half(), dtype=dtypes.float),
     lambda p, q: rounded(p, 10, -14) @ rounded(q, 10, -14), P, Q, loose=8)
both("halves on tensor cores, sums of halves", lambda p, q: p.half() @ q.half(), None, P, Q, loose=4)
both("halves on tensor cores with what follows", lambda p, q: (p.half().matmul(q.half(), dtype=dtypes.float) + 1).relu().half(),
     lambda p, q: np.maximum(rounded(p, 10, -14) @ rounded(q, 10, -14) + 1, 0).astype(np.float16), P, Q, loose=4)
both("bfloat16 on tensor cores", lambda p, q: p.bfloat16().matmul(q.bfloat16(), dtype=dtypes.float),
     np.matmul, rounded(P, 7, -126), rounded(Q, 7, -126), loose=8)
both("fp8 on the other device", lambda p, q: p.to(second()).cast(dtypes.fp8e4m3).matmul(q.to(second()).cast(dtypes.fp8e4m3),
     dtype=dtypes.float), np.matmul, rounded(P[:32], 3, -6), rounded(Q[:, :16], 3, -6), loose=200)
both("einsum", lambda a, b: [Tensor.einsum("ij,jk->ki", a, b), Tensor.einsum("ij,ij->i", a, a)],
     lambda a, b: [np.einsum("ij,jk->ki", a, b), np.einsum("ij,ij->i", a, a)], A, B, loose=8)


def attention(q: np.ndarray, k: np.ndarray) -> list[np.ndarray]:
    scores = q @ k.transpose(0, 1, 3, 2) / np.sqrt(np.float32(q.shape[-1]))
    earlier = np.where(np.tril(np.ones(scores.shape[-2:], bool)), scores, -np.inf)
    return [softmax(scores) @ k, softmax(earlier) @ k]


both("attention", lambda q, k: [q.scaled_dot_product_attention(k, k), q.scaled_dot_product_attention(k, k, is_causal=True)],
     attention, numbers("query", 2, 3, 16, 32), numbers("key", 2, 3, 16, 32), loose=8)

# Convolutions.
IMAGE, FILTERS = numbers("image", 2, 4, 13, 15), numbers("filters", 6, 4, 3, 3)


def convolved(image: np.ndarray, filters: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image, filters.shape[2:], (2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, filters)


both("convolution", lambda i, f: i.conv2d(f), convolved, IMAGE, FILTERS, loose=8)
both("convolution with stride, padding, dilation", lambda i, f: [i.conv2d(f, stride=2), i.conv2d(f, padding=1), i.conv2d(f, dilation=2)],
     lambda i, f: [convolved(i, f)[:, :, ::2, ::2], convolved(np.pad(i, ((0, 0), (0, 0), (1, 1), (1, 1))), f),
                   convolved(i, np.kron(f, np.array([[1, 0], [0, 0]], np.float32))[:, :, :5, :5])], IMAGE, FILTERS, loose=8)
both("convolution in groups", lambda i, f: [i.conv2d(f[:, :2], groups=2), i.conv2d(f[:4, :1], groups=4)], None, IMAGE, FILTERS, loose=8)
both("transposed convolution", lambda i, f: i.conv_transpose2d(f.permute(1, 0, 2, 3), stride=2), None, IMAGE, FILTERS, loose=8)
both("convolutions of one and three dimensions", lambda i, f: [i[:, :, 0].conv2d(f[:, :, 0]), i.reshape(2, 1, 4, 13, 15).conv2d(
     f.reshape(6, 1, 4, 3, 3)[:, :, :2])], None, IMAGE, FILTERS, loose=8)
both("convolution of halves", lambda i, f: i.half().conv2d(f.half(), padding=1), None, numbers("halves", 2, 16, 8, 8),
     numbers("of halves", 32, 16, 3, 3), loose=8)
both("pools", lambda i: [i.max_pool2d((2, 3)), i.avg_pool2d((3, 3), stride=2), i.max_pool2d((3, 3), padding=1)], None, IMAGE, loose=2)
both("images enlarged", lambda i: [i.interpolate((20, 30), mode="linear"), i.interpolate((26, 30), mode="nearest")], None, IMAGE, loose=4)


def winograd(image: Tensor, filters: Tensor) -> Tensor:
    with Context(WINO=1):
        return image.conv2d(filters).realize()


both("convolution by Winograd", winograd, convolved, IMAGE, FILTERS, loose=100)

# Moving and finding elements.
def replaced(x: Tensor) -> Tensor:
    x = x.contiguous().realize()
    x[3:7, ::2] = 0.5
    x[10] = x[11] * 2
    return x


def replaced_array(x: np.ndarray) -> np.ndarray:
    x = x.copy()
    x[3:7, ::2] = 0.5
    x[10] = x[11] * 2
    return x


PLACES = counts("places", 0, 33, 20)
both("views", lambda x: [x.T, x.flip(0), x[::2, 1::3], x[5:9, -4:], x.reshape(65, 33), x.permute(1, 0).reshape(5, 429)],
     lambda x: [x.T, x[::-1], x[::2, 1::3], x[5:9, -4:], x.reshape(65, 33), x.T.reshape(5, 429)], X)
both("joining", lambda x, y: [Tensor.cat(x, y, dim=1), Tensor.stack(x, y), x.repeat(2, 3), x.pad((1, 2, 3, 4), value=7.0), x.roll(4, 1)],
     lambda x, y: [np.concatenate([x, y], 1), np.stack([x, y]), np.tile(x, (2, 3)),
                   np.pad(x, ((3, 4), (1, 2)), constant_values=7), np.roll(x, 4, 1)], X, Y)
both("indexing by a tensor", lambda x, p: [x[p], x[:, p], x[p, p], x[p][:, 3]], lambda x, p: [x[p], x[:, p], x[p, p], x[p][:, 3]], X, PLACES)
both("gather and scatter", lambda x, p: [x.gather(0, p.reshape(20, 1)), Tensor.zeros(33, 65).scatter(0, p.reshape(20, 1), x[:20, :1]),
     Tensor.zeros(33).scatter_reduce(0, p, x[:20, 0], reduce="sum")], None, X, PLACES, loose=4)
both("masks", lambda x: [(x > 0).where(x, 0), x.masked_fill(x < 0, 9), x.tril(), x.triu(3), x.clip(-1, 1)],
     lambda x: [np.where(x > 0, x, 0), np.where(x < 0, 9, x), np.tril(x), np.triu(x, 3), np.clip(x, -1, 1)], X)
both("one hot and embedding", lambda x, p: [p.one_hot(33), nn.state.load_state_dict(e := nn.Embedding(33, 65), {"weight": x},
     verbose=False) and e(p)], lambda x, p: [np.eye(33, dtype=np.int32)[p], x[p]], X, PLACES)
both("store into a part", replaced, replaced_array, X)
both("ranges", lambda x: [Tensor.arange(100), Tensor.arange(5, 50, 3), Tensor.linspace(0, 1, 17), Tensor.eye(9), x.full_like(3)],
     lambda x: [np.arange(100), np.arange(5, 50, 3), np.linspace(0, 1, 17), np.eye(9), np.full_like(x, 3)], X, loose=2)
both("sorting", lambda x: [x.sort()[0], x.sort(descending=True)[1], x.sort(0)[0]],
     lambda x: [np.sort(x), np.argsort(-x, kind="stable"), np.sort(x, 0)], X)
both("sorting integers", lambda p: [p.sort()[0], p.sort()[1]], lambda p: [np.sort(p), np.argsort(p, kind="stable")],
     counts("sorted", -500, 500, 300))
both("greatest of a row", lambda x: [*x.topk(5)], lambda x: [-np.sort(-x)[:, :5], np.argsort(-x, kind="stable")[:, :5]], X)
both("finding", lambda x: [(x > 1).sum(), (x > 1).nonzero(), x.masked_select(x > 2)],
     lambda x: [(x > 1).sum(), np.argwhere(x > 1), x[x > 2]], X[:9, :9])

# Random numbers: a counter and a key make them, so that all devices have the same.
def seeded(make: object) -> list[Tensor]:
    Tensor.manual_seed(1234)
    return make()


case("random numbers", lambda: seeded(lambda: [Tensor.rand(500), Tensor.rand(7, 11), Tensor.randint(300, low=-5, high=90)]))
case("random numbers of distributions", lambda: seeded(lambda: [Tensor.randn(500), Tensor.uniform(99, low=-3, high=4)]), loose=8)
case("random halves", lambda: seeded(lambda: [Tensor.rand(99, dtype=dtypes.half), Tensor.rand(99, dtype=dtypes.double)]))
case("random permutation", lambda: seeded(lambda: [Tensor.randperm(64), Tensor(softmax(X[:1])).multinomial(20, True)]))

# Two devices.
both("there and back", lambda x: [x.to(second()), (x.to(second()) * 2).to(None) + x, x.to(second()).exp().to(None)],
     lambda x: [x, x * 2 + x, np.exp(x)], X)
both("megabytes there and back", lambda x: (x.to(second()) + 1).contiguous().to(None), lambda x: x + 1, numbers("megabytes", 1 << 20))
both("shards", lambda a, b: [(a.shard(both_devices(), 0) @ b.shard(both_devices())), (a.shard(both_devices(), 1)
     @ b.shard(both_devices(), 0)), a.shard(both_devices(), 0).sum()], lambda a, b: [a @ b, a @ b, a.sum()], A, B, loose=20)

# Gradients.
def trained(optimizer: type) -> list[Tensor]:
    first, last = Tensor(numbers("w", 12, 16) * 0.3), Tensor(numbers("v", 16, 5) * 0.3)
    x, labels = Tensor(numbers("batch", 20, 12)), Tensor(counts("labels", 0, 5, 20))
    steps = optimizer([first, last], lr=0.05)
    losses = []
    with Tensor.train():
        for _ in range(3):
            steps.zero_grad()
            loss = (x @ first).relu().matmul(last).sparse_categorical_crossentropy(labels)
            loss.backward()
            steps.step()
            losses.append(loss.realize())
    return [*losses, first, last]


def gradient(make: object) -> object:
    def found(*inputs: Tensor) -> list[Tensor]:
        for tensor in inputs:
            tensor.requires_grad = True
        make(*inputs).backward()
        return [tensor.grad for tensor in inputs]
    return found


case("training by steepest descent", lambda: trained(nn.optim.SGD), loose=20)
case("training by Adam", lambda: trained(nn.optim.Adam), loose=100)
both("gradients of a convolution", gradient(lambda i, f: i.conv2d(f).relu().square().mean()), None, IMAGE[:1, :2, :7, :7], FILTERS[:3, :2], loose=20)
both("gradients of softmax and norm", gradient(lambda x: (x.layernorm().softmax() * x).sum()), None, X, loose=20)
both("gradients of element operations", gradient(lambda x, y: (x.tanh() * y.exp() + (x * y).sigmoid()).sum()), None, CLEAR, Y, loose=8)
