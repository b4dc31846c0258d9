-- horsies_stopped_workflow: 'PAUSED' or 'CANCELLED' when the workflow of this task may not run, else null.
-- Callers ask only for rows with is_workflow_task: plain tasks never pay for it.
create or replace function horsies_stopped_workflow(backing_task_id text) returns text
language plpgsql stable
set search_path from current
as $$
begin
    return (select w.status
            from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
            where n.task_id = backing_task_id and w.status in ('PAUSED', 'CANCELLED')
            limit 1);
end $$;
