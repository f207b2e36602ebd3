"""One error for each kind of mistake, so that callers can tell them apart."""


class InvalidProbabilities(ValueError):
    """The probabilities are not an n × m table of numbers in [0, 1]."""


class InvalidLabels(ValueError):
    """Truth, answers or a partial prediction do not fit each other, or hold something that is not a label."""


class InvalidPenalty(ValueError):
    """The penalty is not one, or the loss cannot honour it."""


class InvalidLoss(ValueError):
    """The loss is unknown, its parameters are out of range, or it does not fit the prediction."""


class InvalidBudget(ValueError):
    """The limits or prices of a budget make no sense, or the loss cannot honour them."""


class InvalidGuarantee(ValueError):
    """The risk is unknown, the target or the confidence is out of range, or no guarantee can be given for them."""


class InvalidDataset(ValueError):
    """A data file is broken, or is not what it claims to be."""


class DownloadFailed(OSError):
    """A data set could not be fetched from any of its homes."""


class TemporaryFileFailed(OSError):
    """The folder for temporary files is full or cannot be used; no file that was given is to blame."""


class FitFailed(RuntimeError):
    """A learner could not be fitted in an experiment."""
