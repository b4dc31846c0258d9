"""PostgresBroker: the contract's methods, each handed on to the package that does the work."""
