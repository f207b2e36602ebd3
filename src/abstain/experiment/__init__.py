"""The papers' experiments: every data set, learner, loss and penalty, cross-validated in one command.

`Plan` says what to do, `run` does it, and `Results` are the tables it writes. The floor may import all others but the
command line; nothing imports it but the command line. Begin reading at `_protocol.py`, what is compared, then at
`_runner.py`, how it is done.
"""

from abstain.experiment._plan import Plan
from abstain.experiment._problems import Problem, Unfetched, load, look_up
from abstain.experiment._results import Results
from abstain.experiment._runner import run

__all__ = ["Plan", "Problem", "Results", "Unfetched", "load", "look_up", "run"]


def __dir__() -> list[str]:
    return __all__
