"""Import of optional packages, with an error that says how to install them."""

import shlex
from importlib import import_module
from typing import Any, Final

PACKAGES: Final = {
    "PIL": "pillow",
    "dask": "dask[array,dataframe]",
    "distributed": "distributed",
    "joblib": "joblib",
    "matplotlib": "matplotlib",
    "pandas": "pandas",
    "plotly": "plotly",
    "polars": "polars",
    "pooch": "pooch",
    "pyarrow": "pyarrow",
    "pyspark": "pyspark",
    "requests": "requests",
}
"""Module → the package that pip installs, for all packages that the extras in pyproject.toml name."""


def optional(module: str, purpose: str, *others: str) -> Any:
    """Import a module of an optional package; if it is missing, the error says what needs it and how to install it.

    `others` are further modules that the same purpose needs, so that the error names all packages at once.

    Examples
    --------
    >>> from abstain._utils.extras import optional
    >>> optional("pandas.no_such_module", "to_frame needs pandas")
    Traceback (most recent call last):
        ...
    ImportError: to_frame needs pandas: pip install pandas
    """
    try:
        return import_module(module)
    except ImportError as reason:
        raise missing(purpose, module, *others) from reason


def missing(purpose: str, *modules: str) -> ImportError:
    """Return the error that says how to install the packages of some modules."""
    packages = [PACKAGES[module.partition(".")[0]] for module in modules]
    return ImportError(f"{purpose}: pip install {shlex.join(packages)}")
