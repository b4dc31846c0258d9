"""`horsies top`: the system in a terminal, live. Reads and steers through `app.operations` only."""
