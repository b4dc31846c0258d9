-- horsies_settle_nodes: nodes take over how their tasks ended; returns the nodes. A task that has not ended changes nothing.
-- Caller: horsies_advance_tasks, horsies_recover_workflow, under the lock of the workflows.
-- A run that went back unfinished in a cancelled workflow is skipped, as what had not started was (docs/contract/workflows.md §7.3).
-- A missing result is made up from the task's status; recovery (checks_results) looks also whether it can be read.
-- Row by row, as all loops of these functions: a join that was planned while the tables were small would cost n * n for n rows.
create or replace function horsies_settle_nodes(task_ids text[], checks_results boolean) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    task record;
    is_missing boolean;
    is_ok boolean;
    is_skipped boolean;
    node_result text;
    node_id text;
    settled text[] := '{}';
begin
    for task in
        select t.id, t.status, t.started_at, t.result from horsies_tasks t
        where t.id = any (task_ids) and t.status || '' in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
    loop
        is_missing := task.result is null or (checks_results and not horsies_is_result(task.result));
        is_ok := task.status = 'COMPLETED' and not is_missing;
        node_result := case when is_missing then horsies_missing_result(task.id, task.status, task.result is not null) else task.result end;
        is_skipped := task.status = 'CANCELLED' and task.result is null and horsies_stopped_workflow(task.id) is not distinct from 'CANCELLED';
        update horsies_workflow_tasks n set
            status = case when is_skipped then 'SKIPPED' when is_ok then 'COMPLETED' else 'FAILED' end,
            result = case when not is_skipped then node_result end,
            error = case when not is_ok and not is_skipped then horsies_error_of(node_result) end,
            started_at = case when not is_skipped then coalesce(n.started_at, task.started_at) end,
            completed_at = case when not is_skipped then now_at end
        where n.task_id = task.id and n.status || '' in ('PENDING', 'READY', 'ENQUEUED', 'RUNNING')
        returning n.id into node_id;
        if found then
            settled := settled || node_id;
        end if;
    end loop;
    return settled;
end $$;
