"""PostgresBroker: a thin class over one file per concern."""
