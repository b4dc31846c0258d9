"""Re-exports: results and states."""
