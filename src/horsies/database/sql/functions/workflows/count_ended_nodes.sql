-- horsies_count_ended_nodes: workflows take notice of nodes that have just ended: how many are still open, and the failure policy
-- (docs/contract/workflows.md, 6.1). Under 'fail' the last error stays, under 'pause' the first.
-- Caller: horsies_advance_nodes.  finished: RUNNING without open nodes.  to_fill: RUNNING, bounded, with nodes left to enqueue.
create or replace function horsies_count_ended_nodes(ended_ids text[], out finished text[], out to_fill text[])
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    counted record;
    workflow record;
begin
    finished := '{}';
    to_fill := '{}';
    for counted in
        select n.workflow_id, count(*) as ended_count,
            array_agg(n.error order by n.completed_at, n.task_index) filter (where n.status = 'FAILED') as errors
        from horsies_workflow_tasks n where n.id = any (ended_ids) group by n.workflow_id
    loop
        update horsies_workflows w set
            open_nodes = w.open_nodes - counted.ended_count,
            in_flight = greatest(0, w.in_flight - counted.ended_count),
            status = case when w.status = 'RUNNING' and w.on_error = 'pause' and counted.errors is not null then 'PAUSED' else w.status end,
            error = case when counted.errors is null or w.status in ('COMPLETED', 'FAILED', 'CANCELLED') then w.error
                         when w.on_error = 'pause' then coalesce(w.error, counted.errors[1])
                         else counted.errors[cardinality(counted.errors)] end,
            updated_at = now_at
        where w.id = counted.workflow_id
        returning w.id, w.status, w.open_nodes, w.max_in_flight into workflow;
        if workflow.status = 'RUNNING' and workflow.open_nodes <= 0 then
            finished := finished || workflow.id::text;
        elsif workflow.status = 'RUNNING' and workflow.max_in_flight is not null then
            to_fill := to_fill || workflow.id::text;
        end if;
    end loop;
end $$;
