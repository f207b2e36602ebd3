"""One error for each kind of mistake, so that callers can tell them apart, and how they quote what is wrong."""

LONGEST_QUOTE = 80  # characters of a name or a value that an error shows


def quoted(value: object) -> str:
    """How an error shows a name or a value: as Python writes it, without its middle if it is long.

    Examples
    --------
    >>> from abstain._utils.errors import quoted
    >>> quoted("sea")
    "'sea'"
    >>> quoted("a" * 5000)
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'"
    """
    text = repr(value)
    if len(text) <= LONGEST_QUOTE:
        return text
    half = (LONGEST_QUOTE - 1) // 2
    return f"{text[:half]}…{text[-(LONGEST_QUOTE - 1 - half) :]}"


class AbstainError(ValueError):
    """The base of all errors that this library raises on purpose."""

    def __init_subclass__(cls) -> None:
        cls.__module__ = "abstain"  # where users import it from


AbstainError.__module__ = "abstain"


class InvalidProbabilities(AbstainError):
    """The probabilities are not an n × m table of numbers in [0, 1]."""


class NoProbabilities(InvalidProbabilities):
    """It is not one value that is wrong: percentages, logits, numbers of rows or text were taken for probabilities."""


class InvalidLabels(AbstainError):
    """Truth, answers or a partial prediction do not fit each other, or hold something that is not a label."""


class InvalidPenalty(AbstainError):
    """The penalty is not one, or the loss cannot honour it."""


class InvalidLoss(AbstainError):
    """The loss is unknown, its parameters are out of range, or it does not fit the prediction."""


class InvalidBudget(AbstainError):
    """The limits or prices of a budget make no sense, or the loss cannot honour them."""


class InvalidGuarantee(AbstainError):
    """The risk is unknown, the target or the confidence is out of range, or no guarantee can be given for them."""


class InvalidDataset(AbstainError):
    """A data file is broken, or is not what it claims to be."""


class MissingFile(AbstainError, FileNotFoundError):
    """A file or folder that was named is not there."""


class InvalidOutput(AbstainError):
    """The output cannot go where it should: no such folder, no permission, the place of an input, an unknown format."""


class InvalidParameter(AbstainError):
    """A parameter that no other error is about is of the wrong kind or out of range."""


class DatasetWarning(UserWarning):
    """A data file contradicts itself, or the list of labels beside it; what was read may not be what was meant."""


class DownloadFailed(AbstainError, OSError):
    """A data set could not be fetched from any of its homes."""


class TemporaryFileFailed(AbstainError, OSError):
    """The folder for temporary files is full or cannot be used; no file that was given is to blame."""


class FitFailed(AbstainError, RuntimeError):
    """A learner could not be fitted in an experiment."""
