"""Inner loops, compiled by numba: plain arrays in, plain arrays out.

Kernels do not check their input, release the GIL, and import nothing of the package but each other and the compiler.
Begin with `choice`, which chooses the number of abstentions, then `labelwise`, the simplest family of losses.
"""
