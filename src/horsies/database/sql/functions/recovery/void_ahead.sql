-- horsies_void_ahead: what a lost worker has taken ahead beyond its permit shall never begin there, should the worker still live.
-- Caller: horsies_fail_lost_runs, horsies_return_unpermitted_runs.  Locks: the worker's permit lock, if it is free.
-- Returns what the worker was permitted, per lane; null while it is just being granted more, or when nothing tells.
create or replace function horsies_void_ahead(owner_id text) returns bigint[]
language plpgsql
set search_path from current
as $$
declare
    known bigint[];
begin
    if not pg_try_advisory_xact_lock(horsies_lock_key('permit:' || owner_id)) then
        return null;
    end if;
    known := horsies_permitted_numbers(owner_id);
    insert into horsies_worker_permits as p (worker_id, granted_by, grant_number, permitted, granted_at)
    select owner_id, 'void', 0, array_agg(coalesce(t.number, -1) order by l.lane), horsies_now()
    from generate_series(1, cardinality(known)) l(lane)
    left join lateral (
        select max(t.ahead_number) as number from horsies_tasks t
        where t.status = 'RUNNING' and t.claimed_by_worker_id = owner_id and (t.ahead_number >> 56) + 1 = l.lane) t on true
    having known is not null
    on conflict (worker_id, granted_by, grant_number) do update set granted_at = excluded.granted_at, permitted = array(
        select greatest(v.before, v.now) from unnest(p.permitted, excluded.permitted) with ordinality v(before, now, lane) order by v.lane);
    return known;
end $$;
