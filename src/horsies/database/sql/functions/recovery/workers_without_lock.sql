-- horsies_workers_without_lock: workers that held a session lock as long as they lived, and hold it no more.
-- Caller: horsies_watch_workers; workers of release 0.2. Reads only: recent snapshots by their time, or one index probe per worker ever seen; pg_locks once.
create or replace function horsies_workers_without_lock(seen_within interval)
returns table (worker_id text, hostname text, pid integer, pid_started_at double precision, host_key text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    worker_ids text[];
begin
    if seen_within is not null then
        worker_ids := array(select distinct s.worker_id from horsies_worker_states s where s.snapshot_at >= horsies_now() - seen_within);
    else
        with recursive ids as (
            (select s.worker_id from horsies_worker_states s order by s.worker_id limit 1)
            union all
            select (select s.worker_id from horsies_worker_states s where s.worker_id > i.worker_id order by s.worker_id limit 1)
            from ids i where i.worker_id is not null)
        select coalesce(array_agg(i.worker_id), '{}') into worker_ids from ids i where i.worker_id is not null;
    end if;
    return query
        with locks as materialized (
            select (l.classid::bigint << 32) | l.objid::bigint as key
            from pg_locks l
            where l.locktype = 'advisory' and l.granted and l.objsubid = 1
              and l.database = (select d.oid from pg_database d where d.datname = current_database())
        )
        select s.worker_id::text, s.hostname::text, s.pid, s.pid_started_at, s.host_key::text
        from unnest(worker_ids) i(worker_id)
        cross join lateral (
            select * from horsies_worker_states w where w.worker_id = i.worker_id
            order by w.snapshot_at desc limit 1) s
        where s.holds_lock and not exists (select from locks l where l.key = horsies_lock_key('worker:' || s.worker_id));
end $$;
