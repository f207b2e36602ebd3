"""The code of an abstention in arrays."""

ABSTAIN = -1
"""The code of an abstained label in predictions, and of a label that is not ranked in rankings."""
