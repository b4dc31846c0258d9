"""Passes that repair and tidy, run by every worker; one of them sweeps at a time."""
