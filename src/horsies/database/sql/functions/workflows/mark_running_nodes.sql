-- horsies_mark_running_nodes: ENQUEUED -> RUNNING for nodes whose task has begun, for those who look and for a call that stops the
-- workflow; a node that ends soon is spared it.
-- Caller: worker/node_marks.py, worker/stopped_nodes.py.  Locks: horsies_workflow_tasks, skipping locked rows.
create or replace function horsies_mark_running_nodes(task_ids text[]) returns integer
language plpgsql
set search_path from current
set enable_seqscan = off
as $$
declare
    marked integer;
begin
    update horsies_workflow_tasks n set status = 'RUNNING', started_at = coalesce(n.started_at, t.started_at)
    from horsies_tasks t
    where t.id = n.task_id and t.status || '' = 'RUNNING' and n.id = any (array(
        select c.id from horsies_workflow_tasks c
        where c.task_id = any (task_ids) and c.status || '' = 'ENQUEUED'
        order by c.id for update skip locked));
    get diagnostics marked = row_count;
    return marked;
end $$;
