"""Errors that a user of the command line can fix. The message is one sentence with a remedy."""


class DataError(Exception):
    """A problem with the data or a model file: exit code 3."""


class UsageError(Exception):
    """A problem with the arguments: exit code 2."""
