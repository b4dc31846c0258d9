-- horsies_settle_nodes: nodes take over how their tasks ended; returns the nodes. A task that has not ended changes nothing.
-- Caller: horsies_advance_tasks, horsies_recover_workflows, under the lock of the workflows.
-- A run that went back unfinished in a cancelled workflow is skipped, as what had not started was (docs/contract/workflows.md §7.3).
-- A missing result is made up from the task's status; recovery (checks_results) looks also whether it can be read.
create or replace function horsies_settle_nodes(task_ids text[], checks_results boolean) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    settled text[];
begin
    with ended as (
        select t.id, t.status, t.started_at, t.result, t.result is null or (checks_results and not horsies_is_result(t.result)) as is_missing
        from unnest(task_ids) i(id) join horsies_tasks t on t.id = i.id
        where t.status || '' in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
    ), judged as (
        select e.id, e.started_at, e.status = 'COMPLETED' and not e.is_missing as is_ok, e.status = 'CANCELLED' and e.result is null as never_ended,
            case when e.is_missing then horsies_missing_result(e.id, e.status, e.result is not null) else e.result end as result
        from ended e
    ), found as (
        select n.id, j.is_ok, j.result, j.started_at, j.never_ended and exists (
            select from horsies_workflows w where w.id = n.workflow_id and w.status = 'CANCELLED') as is_skipped
        from judged j join horsies_workflow_tasks n on n.task_id = j.id
        where n.status || '' in ('PENDING', 'READY', 'ENQUEUED', 'RUNNING')
    ), changed as (
        update horsies_workflow_tasks n set
            status = case when f.is_skipped then 'SKIPPED' when f.is_ok then 'COMPLETED' else 'FAILED' end,
            result = case when not f.is_skipped then f.result end,
            error = case when not f.is_ok and not f.is_skipped then horsies_error_of(f.result) end,
            started_at = case when not f.is_skipped then coalesce(n.started_at, f.started_at) end,
            completed_at = case when not f.is_skipped then now_at end
        from found f where n.id = f.id
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into settled from changed c;
    return settled;
end $$;
