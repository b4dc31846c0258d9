"""Re-exports: fingerprint and URL functions."""
