"""Measured runs: our targets, raw SQL floors and peers, side by side in one run."""
