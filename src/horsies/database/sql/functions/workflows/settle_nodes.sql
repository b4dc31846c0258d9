-- horsies_settle_nodes: nodes take over how their tasks ended; returns the nodes. A task that has not ended changes nothing.
-- Caller: horsies_advance_tasks, horsies_recover_workflow, under the lock of the workflows.
-- A run that went back unfinished in a cancelled workflow is skipped, as what had not started was (docs/contract/workflows.md, 7.3).
-- A missing result is made up from the task's status; recovery (checks_results) looks also whether it can be read.
-- The planner settings, the range and the steps of their own (offset 0) leave one plan: each task finds its node by the index (decision 0003).
create or replace function horsies_settle_nodes(task_ids text[], checks_results boolean) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
declare
    now_at timestamptz := horsies_now();
    settled text[];
begin
    with ended as (
        select t.id, t.status, t.started_at, t.result, t.result is null or (checks_results and not horsies_is_result(t.result)) as is_missing
        from horsies_tasks t
        where t.id = any (task_ids) and t.status || '' in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
    ), judged as (
        select n.id as node_id, e.started_at, e.status = 'COMPLETED' and not e.is_missing as is_ok,
            case when e.is_missing then horsies_missing_result(e.id, e.status, e.result is not null) else e.result end as result,
            e.status = 'CANCELLED' and e.result is null
                and horsies_stopped_workflow(e.id) is not distinct from 'CANCELLED' as is_skipped
        from ended e cross join lateral (select n.id from horsies_workflow_tasks n where n.task_id = e.id offset 0) n
        offset 0
    ), changed as (
        update horsies_workflow_tasks n set
            status = case when j.is_skipped then 'SKIPPED' when j.is_ok then 'COMPLETED' else 'FAILED' end,
            result = case when not j.is_skipped then j.result end,
            error = case when not j.is_ok and not j.is_skipped then horsies_error_of(j.result) end,
            started_at = case when not j.is_skipped then coalesce(n.started_at, j.started_at) end,
            completed_at = case when not j.is_skipped then now_at end
        from judged j
        where n.id between j.node_id and j.node_id and n.status || '' in ('PENDING', 'READY', 'ENQUEUED', 'RUNNING')
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into settled from changed c;
    return settled;
end $$;
