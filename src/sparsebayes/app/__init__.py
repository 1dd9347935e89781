"""The command line and the HTML report."""
