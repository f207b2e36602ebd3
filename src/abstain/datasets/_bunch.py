"""The result of every loader of a data set."""

from sklearn.utils import Bunch


class MultiLabelBunch(Bunch):
    """scikit-learn's Bunch of a multi-label data set, which shows its size instead of its contents.

    Examples
    --------
    >>> from abstain.datasets import load_digit_pairs
    >>> load_digit_pairs(n_samples=500)
    MultiLabelBunch of 500 instances × 112 features × 10 labels
    (data, target, feature_names, target_names, images, DESCR)
    """

    def __repr__(self) -> str:
        if not {"data", "target"} <= self.keys():
            return super().__repr__()
        (n, d), m = self.data.shape, self.target.shape[1]
        return f"MultiLabelBunch of {n} instances × {d} features × {m} labels\n({', '.join(self)})"
