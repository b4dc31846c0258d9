-- Runs at each start with a TCP port. This statement takes no parameters, so the client writes the value into it.
alter role horsies password %s;
