"""Formulas that write an ONNX graph instead of computing: tensors with NumPy's operators, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsebayes.core.types import AnyArray, FloatArray

OPSET, IR_VERSION = 18, 9
"""Of 2023: what onnxruntime 1.14 and later read."""


def onnx_package() -> Any:
    """The onnx package, where it is installed."""
    try:
        import onnx
    except ImportError as error:
        raise ImportError("models are exported with onnx: pip install 'sparsebayes[onnx]'") from error
    return onnx


class Graph:
    """Nodes and constants that have been asked for so far; `prefix` keeps the names of an inner graph apart."""

    def __init__(self, prefix: str = "") -> None:
        self.onnx = onnx_package()
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def input(self, name: str) -> Tensor:
        """A tensor that the graph is given."""
        return Tensor(self, name)

    def constant(self, value: Any) -> Tensor:
        """A tensor of numbers that are known now; text stays text, other numbers than integers and bools are double."""
        array = np.asarray(value)
        array = array.astype(
            object if array.dtype.kind in "OU" else np.float64 if array.dtype.kind == "f" else array.dtype
        )
        name = f"{self.prefix}constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return Tensor(self, name)

    def tensor(self, value: Any) -> Tensor:
        """A tensor as it is; numbers as a constant, which without a decimal point mean the same as with one."""
        return value if isinstance(value, Tensor) else self.constant(np.asarray(value, dtype=np.float64))

    def add(self, operator: str, *inputs: Tensor, n_outputs: int = 1, **attributes: Any) -> Any:
        """The output of a new node (a list of them, if there are several)."""
        names = [f"{self.prefix}{operator}_{len(self.nodes)}" + (f"_{k}" if k else "") for k in range(n_outputs)]
        self.nodes.append(self.onnx.helper.make_node(operator, [tensor.name for tensor in inputs], names, **attributes))
        outputs = [Tensor(self, name) for name in names]
        return outputs[0] if n_outputs == 1 else outputs

    def proto(self, name: str, inputs: list[Any], outputs: list[Any]) -> Any:
        """The graph as onnx knows it; inputs and outputs are given by their type information."""
        return self.onnx.helper.make_graph(self.nodes, name, inputs, outputs, self.constants)


class Tensor:
    """What a node of the graph gives, with the operators of an array."""

    __array_ufunc__ = None  # array * tensor asks the tensor

    def __init__(self, graph: Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def _with(self, operator: str, *others: Any) -> Tensor:
        result: Tensor = self.graph.add(operator, self, *map(self.graph.tensor, others))
        return result

    def _after(self, operator: str, other: Any) -> Tensor:
        result: Tensor = self.graph.add(operator, self.graph.tensor(other), self)
        return result

    def __add__(self, other: Any) -> Tensor:
        return self._with("Add", other)

    __radd__ = __add__

    def __mul__(self, other: Any) -> Tensor:
        return self._with("Mul", other)

    __rmul__ = __mul__

    def __sub__(self, other: Any) -> Tensor:
        return self._with("Sub", other)

    def __rsub__(self, other: Any) -> Tensor:
        return self._after("Sub", other)

    def __truediv__(self, other: Any) -> Tensor:
        return self._with("Div", other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return self._after("Div", other)

    def __matmul__(self, other: Any) -> Tensor:
        if isinstance(other, np.ndarray) and not len(other):
            # onnxruntime leaves the product of no columns with no rows unset.
            return self.with_column(0.0) @ np.zeros((1, *other.shape[1:]))
        return self._with("MatMul", other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return self._after("MatMul", other)

    def __pow__(self, other: Any) -> Tensor:
        return self._with("Pow", other)

    def __neg__(self) -> Tensor:
        return self._with("Neg")

    def __gt__(self, other: Any) -> Tensor:
        return self._with("Greater", other)

    def __lt__(self, other: Any) -> Tensor:
        return self._with("Less", other)

    def sum(self, axis: int, keepdims: bool = False) -> Tensor:
        """The sum along an axis."""
        return self._reduced("ReduceSum", axis, keepdims)

    def max(self, axis: int, keepdims: bool = False) -> Tensor:
        """The largest along an axis."""
        return self._reduced("ReduceMax", axis, keepdims)

    def _reduced(self, operator: str, axis: int, keepdims: bool) -> Tensor:
        result: Tensor = self.graph.add(operator, self, self.graph.constant(np.array([axis])), keepdims=int(keepdims))
        return result

    def at_least(self, least: FloatArray | float) -> Tensor:
        """Max(tensor, least), entry by entry."""
        return self._with("Max", least)

    def at_most(self, most: FloatArray | float) -> Tensor:
        """Min(tensor, most), entry by entry."""
        return self._with("Min", most)

    def columns(self, which: AnyArray) -> Tensor:
        """tensor[:, which]."""
        result: Tensor = self.graph.add("Gather", self, self.graph.constant(np.asarray(which, dtype=np.int64)), axis=1)
        return result

    def new_axis(self, axis: int) -> Tensor:
        """The same with one more axis of length one."""
        result: Tensor = self.graph.add("Unsqueeze", self, self.graph.constant(np.array([axis])))
        return result

    def with_column(self, value: float) -> Tensor:
        """A matrix with a column of this value after its last."""
        result: Tensor = self.graph.add(
            "Pad", self, self.graph.constant(np.array([0, 0, 0, 1])), self.graph.tensor(value)
        )
        return result


def apply(operator: str, x: Tensor, **attributes: Any) -> Tensor:
    """A node with one input, such as "Exp"."""
    result: Tensor = x.graph.add(operator, x, **attributes)
    return result


def where(condition: Tensor, yes: Any, no: Any) -> Tensor:
    """Entries of `yes` where the condition holds, of `no` elsewhere."""
    graph = condition.graph
    result: Tensor = graph.add("Where", condition, graph.tensor(yes), graph.tensor(no))
    return result


def concat(tensors: list[Tensor], axis: int) -> Tensor:
    """Tensors side by side."""
    result: Tensor = tensors[0].graph.add("Concat", *tensors, axis=axis)
    return result


def stack(tensors: list[Tensor], axis: int) -> Tensor:
    """Tensors side by side, along an axis of their own."""
    return concat([tensor.new_axis(axis) for tensor in tensors], axis)
