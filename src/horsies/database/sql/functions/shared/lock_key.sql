-- horsies_lock_key: the advisory lock key of a purpose (claim, sweep, worker:<id>, ...) in this database and schema.
create or replace function horsies_lock_key(purpose text) returns bigint
language sql stable parallel safe as $$
    select ('x' || left(encode(sha256(convert_to(
        'horsies:' || purpose || ':' || current_database() || ':' || current_schema(), 'UTF8')), 'hex'), 16)
    )::bit(64)::bigint
$$;
