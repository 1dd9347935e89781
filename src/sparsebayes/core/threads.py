"""The number of threads of the BLAS libraries."""

from functools import cache

from threadpoolctl import ThreadpoolController


@cache
def blas() -> ThreadpoolController:
    """The BLAS libraries that are loaded; looked for once, because that takes a millisecond."""
    return ThreadpoolController().select(user_api="blas")
