"""Re-exports: the scheduler."""
