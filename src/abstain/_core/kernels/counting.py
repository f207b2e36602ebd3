"""Counts of abstained, right and wrong answers in each row."""

from abstain._core.kernels.codes import ABSTAIN
from abstain._utils.compilation import kernel


@kernel
def count_abstained(codes, counts):
    """counts[i] = the number of abstained labels in row i."""
    n, m = codes.shape
    for i in range(n):
        count = 0
        for j in range(m):
            count += codes[i, j] == ABSTAIN
        counts[i] = count


@kernel
def count_outcomes(truth, codes, is_error, counts):
    """counts[:, i] = the true positives, false positives, false negatives and abstained errors of row i.

    Invariants: truth and is_error are 0 or 1; codes are 1, 0 or abstained. is_error marks the errors of another
    prediction: abstained errors are those labels of it that this one abstains on.
    """
    n, m = codes.shape
    for i in range(n):
        true_positive = false_positive = false_negative = abstained_error = 0
        for j in range(m):
            relevant, code = truth[i, j], codes[i, j]
            true_positive += code == 1 and relevant == 1
            false_positive += code == 1 and relevant == 0
            false_negative += code == 0 and relevant == 1
            abstained_error += code == ABSTAIN and is_error[i, j]
        counts[0, i], counts[1, i] = true_positive, false_positive
        counts[2, i], counts[3, i] = false_negative, abstained_error
