"""What recurs: when a schedule runs next is pure; the scheduler sends it, once for each slot."""
