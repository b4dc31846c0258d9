"""Re-exports: starting workflows."""
