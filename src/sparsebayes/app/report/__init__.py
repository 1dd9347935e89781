"""The report of a study: one HTML file that needs neither a network nor scripts."""
