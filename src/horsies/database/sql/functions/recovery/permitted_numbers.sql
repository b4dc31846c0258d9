-- horsies_permitted_numbers: up to which number, per lane, a worker's tasks taken ahead may have begun; null when nothing tells.
-- Caller: horsies_fail_lost_runs, horsies_void_ahead. Reads only: the newest permit of each writer.
create or replace function horsies_permitted_numbers(owner_id text) returns bigint[]
language plpgsql stable
set search_path from current
as $$
begin
    return (
        select array_agg(n.number order by n.lane) from (
            select u.lane, max(u.number) as number
            from unnest(array['claim', 'finish']) w(granted_by)
            cross join lateral (
                select p.permitted from horsies_worker_permits p
                where p.worker_id = owner_id and p.granted_by = w.granted_by
                order by p.grant_number desc limit 1) p
            cross join lateral unnest(p.permitted) with ordinality u(number, lane)
            group by u.lane) n);
end $$;
