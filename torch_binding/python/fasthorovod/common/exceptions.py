"""The errors that a collective may raise besides ValueError."""

from __future__ import annotations


class HorovodInternalError(RuntimeError):
    """A collective failed while it ran: ranks disagreed, one was lost, or a limit passed.

    After a disagreement the next operation works. After the loss of a rank every operation fails
    until shutdown() and init().

    culprit: the rank at fault, or None when no single rank is.
    code: the kind of failure in one or two words, e.g. "peer lost".
    """

    def __init__(self, message: str = "", culprit: int | None = None, code: str = "") -> None:
        super().__init__(message)
        self.culprit = culprit
        self.code = code

    def __reduce__(self):
        return type(self), (str(self), self.culprit, self.code)
