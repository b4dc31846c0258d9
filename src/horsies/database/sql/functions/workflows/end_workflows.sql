-- horsies_end_workflows: RUNNING -> COMPLETED or FAILED for workflows whose nodes have all ended (docs/contract/workflows.md, 6.2).
-- Returns the nodes in parents that have ended with their child, also where the child had ended before.
-- Caller: horsies_advance_nodes, horsies_decide_workflows, horsies_cancel_workflow, horsies_recover_workflow.
create or replace function horsies_end_workflows(workflow_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    workflow record;
    failure text;
    summary text;
    node_id text;
    ended text[] := '{}';
begin
    for workflow in
        select w.id, w.status, w.result, w.parent_workflow_id, w.parent_task_index from horsies_workflows w
        where w.id = any (workflow_ids) order by w.id
    loop
        if workflow.status = 'RUNNING' and not exists (
            select from horsies_workflow_tasks n
            where n.workflow_id = workflow.id and n.status || '' not in ('COMPLETED', 'FAILED', 'SKIPPED'))
        then
            failure := horsies_workflow_error(workflow.id);
            update horsies_workflows w set
                status = case when failure is null then 'COMPLETED' else 'FAILED' end,
                result = case when failure is null then horsies_workflow_result(w.id) end,
                error = failure, completed_at = now_at, updated_at = now_at, open_nodes = 0
            where w.id = workflow.id
            returning w.status, w.result into workflow.status, workflow.result;
        end if;
        continue when workflow.parent_workflow_id is null or workflow.status not in ('COMPLETED', 'FAILED', 'CANCELLED');

        summary := horsies_workflow_summary(workflow.id);
        failure := case when workflow.status <> 'COMPLETED' then horsies_subworkflow_error(workflow.id, workflow.status, summary) end;
        update horsies_workflow_tasks n set
            status = case when failure is null then 'COMPLETED' else 'FAILED' end,
            result = case when failure is null then workflow.result else horsies_error_result(failure::json) end,
            error = failure, sub_workflow_summary = summary, completed_at = now_at
        where n.workflow_id = workflow.parent_workflow_id and n.task_index = workflow.parent_task_index and n.status || '' = 'RUNNING'
        returning n.id into node_id;
        if found then
            ended := ended || node_id;
        end if;
    end loop;
    return ended;
end $$;
