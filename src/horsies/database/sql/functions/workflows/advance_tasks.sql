-- horsies_advance_tasks: what follows from the ends of workflows' tasks, in the transaction that ends them. Null, or why it could not
-- be done: the tasks' ends stand, and recovery makes up for it. A tree of workflows that fails stops no other of the batch.
-- Caller: worker/completer.py, worker/buffer.py, and functions of recovery that end tasks.
-- Locks: the caller holds those of the workflows.
create or replace function horsies_advance_tasks(task_ids text[]) returns text
language plpgsql
set search_path from current
as $$
declare
    failure text;
    failures text;
    one_tree text[];
begin
    failure := horsies_try_to_advance(task_ids);
    if failure is null or cardinality(task_ids) = 1 then
        return failure;
    end if;
    for one_tree in select t.tree_task_ids from horsies_tasks_by_tree(task_ids) t loop
        failures := nullif(concat_ws('; ', failures, horsies_try_to_advance(one_tree)), '');
    end loop;
    return failures;
end $$;

-- horsies_try_to_advance: the same for all together; null, or why nothing of it was done.
create or replace function horsies_try_to_advance(task_ids text[]) returns text
language plpgsql
set search_path from current
as $$
begin
    perform horsies_advance_nodes(horsies_settle_nodes(task_ids, false));
    return null;
exception when others then
    if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
        raise;  -- about the server, not about these workflows: the caller tries again
    end if;
    return sqlerrm;
end $$;

-- horsies_tasks_by_tree: tasks of workflows, those of one tree together.
create or replace function horsies_tasks_by_tree(task_ids text[]) returns table (tree_task_ids text[])
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    return query
        select array_agg(n.task_id::text) from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
        where n.task_id = any (task_ids)
        group by coalesce(w.root_workflow_id, w.id) order by coalesce(w.root_workflow_id, w.id);
end $$;
