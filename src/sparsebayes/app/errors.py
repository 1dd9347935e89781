"""What can go wrong for a user of the command line, told in one sentence with a remedy."""


class DataError(Exception):
    """Something about the data, or about a model file: exit code 3."""


class UsageError(Exception):
    """Something about what was asked for: exit code 2."""
