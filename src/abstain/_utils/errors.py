"""One error class for each kind of mistake, and the quotation of wrong values in their messages."""

from collections.abc import Sequence

LONGEST_QUOTE = 80  # characters of a name or a value that an error shows
N_NAMED = 5  # names that an error shows; of more it tells the number


def quoted(value: object) -> str:
    """Return a name or a value for an error message: its repr, without the middle if it is long.

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


def some_of(names: Sequence[object]) -> str:
    """Return the first of some names for an error message, and how many more there are.

    Examples
    --------
    >>> from abstain._utils.errors import some_of
    >>> some_of(["sky", "sea"]), some_of(range(7))
    ("'sky', 'sea'", '0, 1, 2, 3, 4 and 2 more')
    """
    more = f" and {len(names) - N_NAMED} more" if len(names) > N_NAMED else ""
    return ", ".join(map(quoted, names[:N_NAMED])) + more


class AbstainError(ValueError):
    """The base of all errors that this library raises on purpose."""

    def __init_subclass__(cls) -> None:
        cls.__module__ = "abstain"  # where users import it from


AbstainError.__module__ = "abstain"


class InvalidProbabilities(AbstainError):
    """The probabilities are not an n × m table of numbers in [0, 1]."""


class NoProbabilities(InvalidProbabilities):
    """Not one value is wrong but the table: percentages, logits, row numbers or text were passed as probabilities."""


class InvalidLabels(AbstainError):
    """Truth, answers or a partial prediction do not fit each other, or hold something that is not a label."""


class InvalidPenalty(AbstainError):
    """The penalty is invalid, or the loss does not support it."""


class InvalidLoss(AbstainError):
    """The loss is unknown, its parameters are out of range, or it does not fit the prediction."""


class InvalidBudget(AbstainError):
    """The limits or prices of a budget are invalid, or the loss does not support them."""


class InvalidGuarantee(AbstainError):
    """The risk is unknown, the target or the confidence is out of range, or no guarantee can be given for them."""


class InvalidDataset(AbstainError):
    """A data file is broken, or not in the expected format."""


# The built-in class comes first where it is one of files: its constructor is the one that makes the object.
class MissingFile(FileNotFoundError, AbstainError):
    """A file or folder that was named does not exist."""


class InvalidOutput(AbstainError):
    """An output cannot be written: no such folder, no permission, it is an input, or its format is unknown."""


class InvalidParameter(AbstainError):
    """A parameter that no other error covers is of the wrong type or out of range."""


class DatasetWarning(UserWarning):
    """A data file contradicts itself or its list of labels, so that it may have been read wrongly."""


class ProbabilityWarning(UserWarning):
    """Numbers may not be the probabilities they were passed as, so that decisions would be wrong."""


class DownloadFailed(OSError, AbstainError):
    """A data set could not be downloaded from any of its addresses."""


class TemporaryFileFailed(OSError, AbstainError):
    """The folder for temporary files is full or cannot be used; the files that were given are not the cause."""


class FitFailed(RuntimeError, AbstainError):
    """A learner could not be fitted in an experiment."""
