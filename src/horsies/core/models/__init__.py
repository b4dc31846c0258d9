"""Re-exports: configuration and result models."""
