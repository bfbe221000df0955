"""Count the floating-point operations of matrix products in a traced JAX program, without compiling or running it.

The count is compared with the rate of a large matrix multiplication. So only products and convolutions count, with one
multiplication and one addition per term; element-wise operations do not. The program is counted as traced, including
backward passes and operations that the compiler would remove.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn


class _UnknownCountError(Exception):
    """The program has matrix products in a loop of unknown length."""


def matmul_flop(function: Callable[..., Any], *arguments: Any) -> int | None:
    """Return the number of floating-point operations of all matrix products in a call; arguments may be shapes.

    The body of a scan counts once per iteration, and of several branches only the most expensive one counts. Return
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
    # every kind of call (jit, checkpoint, custom rules, loops, branches) has the called program among its parameters
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
    """Count every kernel position for every output, including those over padding."""
    (_, kernel), convolved = _arrays(equation)
    features_out = kernel.shape[equation.params["dimension_numbers"].rhs_spec[0]]
    return 2 * int(convolved.size) * (int(kernel.size) // features_out)


def _arrays(equation: JaxprEqn) -> tuple[list[Any], Any]:
    """Return the inputs and the single output array."""
    (out,) = equation.outvars
    return [each.aval for each in equation.invars], out.aval
