"""The papers' experiments: every data set, learner, loss and penalty, in one command.

`Plan` says what to do, `run` does it, and `Results` are the tables it writes.
"""

from abstain.experiment.plan import Plan
from abstain.experiment.problems import Problem, Unfetched, load, look_up
from abstain.experiment.results import Results
from abstain.experiment.runner import run

__all__ = ["Plan", "Problem", "Results", "Unfetched", "load", "look_up", "run"]
