-- horsies_scan_lane: finds and locks the oldest claimable rows of one queue, priority and lane behind a mark, at most row_limit.
-- Caller: horsies_scan_queues, under the planner settings of horsies_claim_tasks_v2.  Locks: horsies_tasks, skipping locked rows.
-- A lane has the task names `only_names`, or all but `except_names`, or simply all. A sparse lane, one that found little the last
-- time, is scanned up to horsies_scan_limit: a claim must not wait for its walk over a deep backlog of other lanes.
-- A scan that found fewer rows says how far it came: to the row at its limit, behind which there may be more; or, without an
-- id, to all rows before an instant. The next scan may start there.
-- byte_count is the size of the rows' arguments: octet_length knows it from the TOAST pointer and reads none of them.
create or replace function horsies_scan_lane(
    queue text, at_priority integer, lane jsonb, mark jsonb, row_limit integer, now_at timestamptz,
    out task_ids text[], out byte_count bigint, out scanned_to_at timestamptz, out scanned_to_id text
)
language plpgsql
as $$
declare
    only_names jsonb := nullif(lane -> 'only_names', 'null');
    except_names jsonb := nullif(lane -> 'except_names', 'null');
    start_at timestamptz := coalesce((mark ->> 'enqueued_at')::timestamptz, '-infinity');
    start_id text := coalesce(mark ->> 'id', '');
    end_at timestamptz;
    end_id text;
begin
    if (lane ->> 'is_sparse')::boolean then
        select l.end_at, l.end_id into end_at, end_id
        from horsies_scan_limit(queue, at_priority, start_at, start_id, now_at) l;
    end if;
    with found as (
        select t.id, coalesce(octet_length(t.args), 0) + coalesce(octet_length(t.kwargs), 0) as byte_count
        from horsies_tasks t
        where t.status = 'PENDING' and t.queue_name = queue and t.priority = at_priority
          and (t.enqueued_at, t.id) > (start_at, start_id)
          and t.enqueued_at <= coalesce(end_at, now_at)  -- this one ends the walk, the next cuts within an instant
          and (t.enqueued_at, t.id) <= (coalesce(end_at, 'infinity'), coalesce(end_id, ''))
          and (t.next_retry_at is null or t.next_retry_at <= now_at)
          and (t.good_until is null or t.good_until > now_at)
          and (only_names is null or only_names ? t.task_name)
          and (except_names is null or not except_names ? t.task_name)
          and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is null)
        order by t.enqueued_at, t.id
        limit row_limit
        for update skip locked)
    select coalesce(array_agg(f.id::text), '{}'), coalesce(sum(f.byte_count), 0) into task_ids, byte_count from found f;
    if cardinality(task_ids) < row_limit then
        -- A second back: rows that are being committed now may bear a time before now.
        scanned_to_at := coalesce(end_at, now_at - interval '1 second');
        scanned_to_id := end_id;
    end if;
end $$;
