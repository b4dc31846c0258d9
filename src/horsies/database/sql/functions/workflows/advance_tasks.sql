-- horsies_advance_tasks: what follows from the ends of workflows' tasks, in the transaction that ends them. Null, or what was wrong: the
-- tasks' ends stand. A tree of workflows that cannot go on stops no other of the batch.
-- Caller: worker/completer.py, worker/buffer.py, and functions of recovery that end tasks.
-- Locks: the caller holds those of the workflows.
create or replace function horsies_advance_tasks(task_ids text[]) returns text
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
    return horsies_mend_trees(array(select n.workflow_id::text from horsies_workflow_tasks n where n.task_id = any (task_ids)));
end $$;

-- horsies_advance_ended: what follows from nodes that have just ended by themselves, contained in the same way.
-- Caller: horsies_wake_nodes, horsies_fail_nodes.  Locks: the caller holds those of the workflows.
create or replace function horsies_advance_ended(node_ids text[]) returns text
language plpgsql
set search_path from current
as $$
begin
    perform horsies_advance_nodes(node_ids);
    return null;
exception when others then
    if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
        raise;
    end if;
    return horsies_mend_trees(array(select n.workflow_id::text from horsies_workflow_tasks n where n.id = any (node_ids)));
end $$;

-- horsies_mend_trees: each of these workflows goes on as far as it can, by itself, from the states of its nodes and tasks; one that
-- cannot is given up. Null, or what was wrong.
-- Caller: horsies_advance_tasks, horsies_advance_ended, when what should follow for all together has failed for one.
create or replace function horsies_mend_trees(workflow_ids text[]) returns text
language plpgsql
set search_path from current
as $$
declare
    one text;
    failures text;
begin
    for one in select distinct i.id from unnest(workflow_ids) i(id) order by i.id loop
        failures := nullif(concat_ws('; ', failures, horsies_mend_workflow(one)), '');
    end loop;
    return failures;
end $$;
