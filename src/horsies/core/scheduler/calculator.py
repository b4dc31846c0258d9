"""Re-exports: when a schedule runs next."""

from horsies.scheduling.next_run import calculate_next_run, should_run_now

__all__ = ["calculate_next_run", "should_run_now"]
