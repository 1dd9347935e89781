"""Loops: from a problem and a start to a maximum of the priced evidence."""
