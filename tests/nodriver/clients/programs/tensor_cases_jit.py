"""Cases of programs that tinygrad records and repeats: as graphs of the driver with ``JIT=1``, without with ``JIT=2``.

Each is called several times with other numbers, so that recording, the first repetition and later ones all count.
"""

from __future__ import annotations

import numpy as np
from tensor_cases import case, listed, numbers
from tensor_cases_shapes import rounded, second
from tinygrad import Tensor, TinyJit, Variable, dtypes, nn

CALLS = 5


def repeated(name: str, make: object, of_array: object, *shapes: tuple[int, ...], loose: float = 4.0) -> None:
    """A case of ``make`` recorded and repeated, with new inputs in every call."""
    inputs = [[numbers(f"{name}{call}", *shape) for shape in shapes] for call in range(CALLS)]

    def found() -> list[Tensor]:
        recorded = TinyJit(lambda *tensors: [t.realize() for t in listed(make(*tensors))])
        outputs = []
        for arrays in inputs:
            # What a recorded program returns is the same memory in every call.
            outputs += [Tensor(t.numpy()) for t in recorded(*[Tensor(array).realize() for array in arrays])]
        return outputs

    expected = None if of_array is None else lambda: [array for arrays in inputs for array in listed(of_array(*arrays))]
    case(name, found, expected, loose)


def long_chain(x: Tensor) -> Tensor:
    for step in range(40):
        x = (x * 0.9 + 0.01 * step).contiguous() if step % 3 else (x @ x.T * 0.05).contiguous()
    return x


repeated("recorded: one kernel", lambda x: x * 2 + 1, lambda x: x * 2 + 1, (100, 10))
repeated("recorded: a chain", lambda x, y: ((x @ y).contiguous().relu().contiguous() @ y.T).contiguous().tanh() * 3,
         lambda x, y: np.tanh(np.maximum(x @ y, 0) @ y.T) * 3, (32, 24), (24, 40), loose=100)
repeated("recorded: branches that join", lambda x, y: [(x.exp().contiguous() + y.sin().contiguous()).contiguous(), (x - y).sum(0)],
         lambda x, y: [np.exp(x) + np.sin(y), (x - y).sum(0)], (40, 50), (40, 50), loose=8)
repeated("recorded: halves on tensor cores", lambda x, y: x.half().contiguous().matmul(y.half().contiguous(), dtype=dtypes.float),
         lambda x, y: rounded(x, 10, -14) @ rounded(y, 10, -14), (64, 32), (32, 64), loose=8)
repeated("recorded: two devices", lambda x: ((x + 1).to(second()).contiguous() * 2).contiguous().to(None).contiguous() - x,
         lambda x: (x + 1) * 2 - x, (64, 64))
repeated("recorded: a long chain", long_chain, None, (16, 16), loose=50)


def state() -> list[Tensor]:
    total = Tensor.zeros(64).contiguous().realize()

    @TinyJit
    def add(x: Tensor) -> Tensor:
        return total.assign(total + x).realize()

    for call in range(CALLS):
        add(Tensor(numbers(f"state{call}", 64)).realize())
    return [total]


def variable() -> list[Tensor]:
    many = Tensor(numbers("variable", 64, 32)).realize()
    recorded = TinyJit(lambda rows: (rows * 2).sum(0).contiguous().realize())
    found = []
    for count in (3, 9, 17, 41, 64):
        bound = Variable("rows", 1, 64).bind(count)
        found.append(Tensor(recorded(many[:bound]).numpy()))
    return found


def trained() -> list[Tensor]:
    class Model:
        def __init__(self) -> None:
            self.first, self.last = nn.Conv2d(1, 4, 3), nn.Linear(4 * 36, 10)
            for number, tensor in enumerate(nn.state.get_parameters(self)):
                tensor.replace(Tensor(numbers(f"model{number}", *tensor.shape) * 0.2))

        def __call__(self, x: Tensor) -> Tensor:
            return self.last(self.first(x).relu().flatten(1))

    model = Model()
    steps = nn.optim.SGD(nn.state.get_parameters(model), lr=0.1, momentum=0.9)

    @TinyJit
    @Tensor.train()
    def step(x: Tensor) -> Tensor:
        steps.zero_grad()
        loss = model(x).square().mean().backward()
        return loss.realize(*steps.schedule_step())

    losses = [Tensor(step(Tensor(numbers(f"digits{call}", 8, 1, 8, 8)).realize()).numpy()) for call in range(CALLS)]
    return [*losses, *nn.state.get_parameters(model)]


case("recorded: state", state, lambda: sum(numbers(f"state{call}", 64) for call in range(CALLS)), loose=8)
case("recorded: variable shapes", variable,
     lambda: [(numbers("variable", 64, 32)[:count] * 2).sum(0) for count in (3, 9, 17, 41, 64)], loose=8)
case("recorded: training", trained, loose=100)
