-- horsies_attempt_number: the number of the attempt a row is at. A count at the integer's limit, written by hand, stays there.
create or replace function horsies_attempt_number(retry_count integer) returns integer
language sql immutable parallel safe as $$
    select least(retry_count, 2147483646) + 1
$$;
