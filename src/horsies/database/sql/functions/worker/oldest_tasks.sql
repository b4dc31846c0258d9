-- horsies_oldest_tasks: the oldest of the rows that a claim has found in several lanes, with their lanes.
-- Caller: horsies_scan_queues, where lanes share what is left.  Locks: none, the rows are locked already.
create or replace function horsies_oldest_tasks(
    inout task_ids text[], inout task_lanes integer[], row_limit integer
)
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = on  -- off in the caller, for its scans
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    select array_agg(o.id order by o.position), array_agg(o.lane order by o.position) into task_ids, task_lanes
    from (select f.id, f.lane, row_number() over (order by t.enqueued_at, t.id) as position
          from unnest(task_ids, task_lanes) f(id, lane) join horsies_tasks t on t.id = f.id
          order by position limit row_limit) o;
end $$;
