-- horsies_oldest_tasks: the oldest of the rows that a claim has found: at most row_limit, and none after the one with which their
-- arguments reach byte_limit, if there is one.
-- Caller: horsies_scan_queues, where lanes share what is left.  Locks: none, the rows are locked already.
-- task_ids come lane by lane, so many of each as in_lanes says, and leave so.
create or replace function horsies_oldest_tasks(
    inout task_ids text[], inout in_lanes integer[], row_limit integer, byte_limit bigint, out byte_count bigint
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
    with found as (
        select i.id, i.lane, t.enqueued_at, coalesce(octet_length(t.args), 0) + coalesce(octet_length(t.kwargs), 0) as byte_count
        from unnest(task_ids, array(select l.lane from unnest(in_lanes) with ordinality l(found, lane), generate_series(1, l.found))) i(id, lane)
        join horsies_tasks t on t.id between i.id and i.id
    ), kept as (
        select * from (
            select f.*, row_number() over by_age as age, sum(f.byte_count) over by_age - f.byte_count as bytes_before
            from found f window by_age as (order by f.enqueued_at, f.id)) a
        where a.age <= row_limit and (byte_limit is null or a.bytes_before < byte_limit)
    )
    select array(select k.id from kept k order by k.lane, k.age), (select sum(k.byte_count) from kept k),
        array(select (select count(*) from kept k where k.lane = l)::integer from generate_series(1, cardinality(in_lanes)) l order by l)
    into task_ids, byte_count, in_lanes;
end $$;
