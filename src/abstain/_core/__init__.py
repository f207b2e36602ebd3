"""The mathematics: probabilities, losses and penalties in, optimal partial predictions and risk profiles out.

This floor imports `_utils` only, reads no files, and its loops are in `kernels`; see pyproject.toml for the order of
its modules. Begin with `decision.decide`, then `losses.base.Loss`, which each loss implements, and `profile`.
"""
