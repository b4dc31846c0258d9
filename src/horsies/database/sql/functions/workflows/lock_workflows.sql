-- horsies_lock_workflows: locks the trees of workflows to which these workflows belong, by their roots, in the order of ids. Whoever
-- changes a node, a workflow or the end of a workflow's task holds this lock; rows of tasks are locked after it (docs/states.md).
create or replace function horsies_lock_workflows(workflow_ids text[]) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    perform from horsies_workflows r
    where r.id = any (array(
        select coalesce(w.root_workflow_id, w.id) from horsies_workflows w where w.id = any (workflow_ids)))
    order by r.id for no key update;
end $$;

-- horsies_lock_workflows_of_tasks: the same for the workflows of these tasks.
-- Caller: worker/completer.py and worker/buffer.py before they end tasks, in the same transaction; functions of recovery.
create or replace function horsies_lock_workflows_of_tasks(task_ids text[]) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    perform horsies_lock_workflows(array(
        select distinct n.workflow_id::text from horsies_workflow_tasks n where n.task_id = any (task_ids)));
end $$;
