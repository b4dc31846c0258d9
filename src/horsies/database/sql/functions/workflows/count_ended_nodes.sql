-- horsies_count_ended_nodes: workflows take notice of nodes that have just ended: how many are still open, and the failure policy
-- (docs/contract/workflows.md §6.1). Under 'fail' the last error stays, under 'pause' the first.
-- Caller: horsies_advance_nodes.  finished: RUNNING without open nodes.  to_fill: RUNNING, bounded, with nodes left to enqueue.
create or replace function horsies_count_ended_nodes(ended_ids text[], out finished text[], out to_fill text[])
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
begin
    with counted as (
        select n.workflow_id, count(*)::integer as ended_count,
            array_agg(n.error order by n.completed_at, n.task_index) filter (where n.status = 'FAILED') as errors
        from unnest(ended_ids) i(id) join horsies_workflow_tasks n on n.id = i.id
        group by n.workflow_id
    ), changed as (
        update horsies_workflows w set
            open_nodes = w.open_nodes - c.ended_count,
            in_flight = greatest(0, w.in_flight - c.ended_count),
            status = case when w.status = 'RUNNING' and w.on_error = 'pause' and c.errors is not null then 'PAUSED' else w.status end,
            error = case when c.errors is null or w.status in ('COMPLETED', 'FAILED', 'CANCELLED') then w.error
                         when w.on_error = 'pause' then coalesce(w.error, c.errors[1])
                         else c.errors[cardinality(c.errors)] end,
            updated_at = now_at
        from counted c where w.id = c.workflow_id
        returning w.id, w.status, w.open_nodes, w.max_in_flight)
    select coalesce(array_agg(c.id::text) filter (where c.status = 'RUNNING' and c.open_nodes <= 0), '{}'),
        coalesce(array_agg(c.id::text) filter (where c.status = 'RUNNING' and c.open_nodes > 0 and c.max_in_flight is not null), '{}')
    into finished, to_fill from changed c;
end $$;
