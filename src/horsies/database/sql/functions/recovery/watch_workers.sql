-- horsies_watch_workers: horsies_workers_without_lock for one session at a time: that which holds the lock of this office. Without
-- office, for anyone. Others get one row of nulls. Who takes the office looks at all workers ever seen, then at recent ones.
-- Caller: recovery/death_watch.py. Locks: the advisory lock of the office, for the session, without waiting.
create or replace function horsies_watch_workers(office text, seen_within interval)
returns table (worker_id text, hostname text, pid integer, pid_started_at double precision, host_key text)
language plpgsql
set search_path from current
as $$
declare
    key bigint := horsies_lock_key(office);
begin
    if office is not null and not exists (
        select from pg_locks l
        where l.pid = pg_backend_pid() and l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and (l.classid::bigint << 32) | l.objid::bigint = key)
    then
        if not pg_try_advisory_lock(key) then
            return next;
            return;
        end if;
        seen_within := null;
    end if;
    return query select w.* from horsies_workers_without_lock(seen_within) w;
end $$;
