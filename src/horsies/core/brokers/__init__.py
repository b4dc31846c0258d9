"""Re-exports: the broker and its results."""
