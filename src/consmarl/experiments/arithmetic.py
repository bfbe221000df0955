"""The arithmetic of matrix products, counted in the program that JAX traces: nothing is compiled or run.

It is compared with the rate of a large matrix multiplication, so products and convolutions count, a multiplication and
an addition for each term, and element-wise work does not. The program counts as it is traced, backward passes included;
what the compiler saves afterwards is not taken off.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn


class _UnknownCountError(Exception):
    """There are products in a loop that goes round nobody knows how often."""


def matmul_flop(function: Callable[..., Any], *arguments: Any) -> int | None:
    """Return the floating-point operations of all matrix products in a call; shapes do for arguments.

    A scan counts as often as it goes round. Of several branches the one with the most counts, whichever would be taken.
    None if there are products in a loop whose length depends on values (`jax.lax.while_loop`).
    """
    try:
        return _of_program(jax.make_jaxpr(function)(*arguments))
    except _UnknownCountError:
        return None


def _of_program(program: Jaxpr | ClosedJaxpr) -> int:
    return sum(map(_of_equation, program.eqns))


def _of_equation(equation: JaxprEqn) -> int:
    name = equation.primitive.name
    if name == "dot_general":
        return _of_product(equation)
    if name == "conv_general_dilated":
        return _of_convolution(equation)
    # every kind of call carries the program that it calls: jit, checkpoint, custom rules, loops, branches
    within = [_of_program(program) for program in _programs_in(equation)]
    if name == "cond":
        return max(within)
    if name == "while" and any(within):
        raise _UnknownCountError
    return sum(within) * (equation.params["length"] if name == "scan" else 1)


def _programs_in(equation: JaxprEqn) -> Iterator[Jaxpr | ClosedJaxpr]:
    for parameter in jax.tree.leaves(list(equation.params.values())):
        if isinstance(parameter, Jaxpr | ClosedJaxpr):
            yield parameter


def _of_product(equation: JaxprEqn) -> int:
    (summed, _), _ = equation.params["dimension_numbers"]
    (left, _), product = _arrays(equation)
    return 2 * int(product.size) * math.prod(left.shape[axis] for axis in summed)


def _of_convolution(equation: JaxprEqn) -> int:
    """Count every place of the kernel for every output, those over padding too."""
    (_, kernel), convolved = _arrays(equation)
    features_out = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2 * int(convolved.size) * (int(kernel.size) // features_out)


def _arrays(equation: JaxprEqn) -> tuple[list[Any], Any]:
    """Return what goes in, and the one array that comes out."""
    (out,) = equation.outvars
    return [each.aval for each in equation.invars], out.aval
