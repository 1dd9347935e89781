"""Pure functions on arrays: every formula of the library, and nothing else."""
