"""Models in files: saving, loading, exporting."""
