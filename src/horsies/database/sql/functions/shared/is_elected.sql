-- horsies_is_elected: whether this session does a work that one session at a time should do; it keeps the office while it lives.
-- For workers of release 0.2. Locks: the advisory lock of that purpose, for the session, without waiting.
create or replace function horsies_is_elected(purpose text) returns boolean
language plpgsql
set search_path from current
as $$
declare
    key bigint := horsies_lock_key(purpose);
begin
    return exists (
            select from pg_locks l
            where l.pid = pg_backend_pid() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
              and (l.classid::bigint << 32) | l.objid::bigint = key)
        or pg_try_advisory_lock(key);
end $$;
