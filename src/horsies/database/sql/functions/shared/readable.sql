-- horsies_readable: an instant as other languages can hold it; null for infinite ones and years outside 1 to 9999.
create or replace function horsies_readable(instant timestamptz) returns timestamptz
language sql immutable parallel safe as $$
    select case when instant > '0001-01-02 00:00:00+00' and instant < '9999-12-30 00:00:00+00' then instant end
$$;
