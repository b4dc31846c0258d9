"""From a call to its row: options, the prepared send, the fingerprint, the enqueuer."""
