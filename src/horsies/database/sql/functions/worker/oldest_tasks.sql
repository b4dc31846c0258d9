-- horsies_oldest_tasks: the oldest of the rows that a claim has found, with their lanes: at most row_limit, and none after the one
-- with which their arguments reach byte_limit, if there is one.
-- Caller: horsies_scan_queues, where lanes share what is left.  Locks: none, the rows are locked already.
create or replace function horsies_oldest_tasks(
    inout task_ids text[], inout task_lanes integer[], row_limit integer, byte_limit bigint, out byte_count bigint
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
    select array_agg(o.id order by o.position), array_agg(o.lane order by o.position), sum(o.byte_count)
    into task_ids, task_lanes, byte_count
    from (select s.id, s.lane, s.byte_count, row_number() over by_age as position,
              sum(s.byte_count) over by_age - s.byte_count as bytes_before
          from (select f.id, f.lane, t.enqueued_at,
                    coalesce(octet_length(t.args), 0) + coalesce(octet_length(t.kwargs), 0) as byte_count
                from unnest(task_ids, task_lanes) f(id, lane) join horsies_tasks t on t.id = f.id) s
          window by_age as (order by s.enqueued_at, s.id)) o
    where o.position <= row_limit and (byte_limit is null or o.bytes_before < byte_limit);
end $$;
