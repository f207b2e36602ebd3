"""What silence buys, on real data: which digits are in a noisy picture of two?

make demo
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

import abstain
from abstain.metrics import abstention_rate, answered_error_rate, error_capture_rate, generalized_loss


def digit_pairs(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two of scikit-learn's handwritten digits side by side, with noise; the labels are the digits present."""
    rng = np.random.default_rng(seed)
    digits = load_digits()
    pairs = rng.integers(0, len(digits.data), (n, 2))
    pictures = digits.data[pairs].reshape(n, -1) + rng.normal(0, 4, (n, 128))
    labels = np.zeros((n, 10), int)
    labels[np.arange(n)[:, None], digits.target[pairs]] = 1
    return pictures, labels


def main() -> None:
    x, y = digit_pairs(3000, seed=0)
    x_test, y_test = digit_pairs(2000, seed=1)
    model = OneVsRestClassifier(LogisticRegression(C=0.001, max_iter=1000)).fit(x, y)
    probabilities = model.predict_proba(x_test)

    full = abstain.decide(probabilities, "hamming", penalty=None)
    everything = np.full_like(y_test, abstain.ABSTAIN)
    print("Two digits in each of 2000 pictures; a wrong label costs 1, a label left to a human costs c.\n")
    print("   c   answering all   asking all   abstain   left open   wrong among answered   errors caught")
    for cost in (0.02, 0.05, 0.1, 0.2, 0.3, 0.5):
        partial = abstain.decide(probabilities, "hamming", penalty=cost)
        losses = [generalized_loss(y_test, answers, "hamming", cost) for answers in (full, everything, partial)]
        print(
            f"{cost:4.2f}   {losses[0]:13.3f}   {losses[1]:10.3f}   {losses[2]:7.3f}   {abstention_rate(partial):9.1%}"
            f"   {answered_error_rate(y_test, partial):20.2%}   {error_capture_rate(y_test, partial, full):13.1%}"
        )
    print("\nThe first pictures at c = 0.1 (? = ask a human), and what they show:\n")
    print(abstain.decide(probabilities, "hamming", penalty=0.1))
    print()
    for i, shown in enumerate(y_test[:8]):
        print(i, *np.flatnonzero(shown))


if __name__ == "__main__":
    main()
