"""The progress bar of commands that read files."""

from typing import Any

from abstain._cli.signals import raise_pending


class Progress:
    """A bar that counts rows, with rate and remaining time; it shows nothing if it is hidden."""

    def __init__(self, title: str, *, hidden: bool) -> None:
        self.title, self.hidden = title, hidden
        self._bar: Any = None

    def start(self, n_rows: int | None) -> None:
        """Begin to count to about `n_rows` rows; None if the number is not known."""
        if self.hidden:
            return
        from tqdm import tqdm

        self.close()
        self._bar = tqdm(desc=self.title, total=n_rows, unit=" rows", unit_scale=True, dynamic_ncols=True, leave=False)

    def advance(self, n_rows: int) -> None:
        """Count rows that are done; end the command here if a signal has asked for it."""
        raise_pending()
        if self._bar is not None:
            self._bar.update(n_rows)

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
