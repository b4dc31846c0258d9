"""Re-exports: the codec as functions."""
