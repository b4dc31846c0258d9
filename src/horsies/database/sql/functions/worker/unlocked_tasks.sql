-- horsies_unlocked_tasks: those of these tasks that nobody else has locked, nor the workflow they belong to; the others answer nothing.
-- Caller: worker/completer.py after a batch met a lock.  Locks: workflows and horsies_tasks, skipping locked rows, until the end
-- of the statement.
create or replace function horsies_unlocked_tasks(task_ids text[]) returns table (task_id text)
language plpgsql
set search_path from current
as $$
declare
    free_roots text[] := array(
        select r.id::text from horsies_workflows r
        where r.id = any (array(
            select coalesce(w.root_workflow_id, w.id) from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
            where n.task_id = any (task_ids)))
        order by r.id for no key update skip locked);
begin
    return query
        select t.id::text from horsies_tasks t
        where t.id = any (task_ids) and not exists (
            select from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
            where t.is_workflow_task and n.task_id = t.id and not coalesce(w.root_workflow_id, w.id) = any (free_roots))
        order by t.id for update of t skip locked;
end $$;
