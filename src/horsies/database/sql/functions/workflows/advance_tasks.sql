-- horsies_advance_tasks: what follows from the ends of workflows' tasks, in the transaction that ends them. Null, or why it could not
-- be done: the tasks' ends stand, and recovery makes up for it.
-- Caller: worker/completer.py, worker/buffer.py, horsies_fail_lost_runs, horsies_expire_tasks.
-- Locks: the caller holds those of the workflows.
create or replace function horsies_advance_tasks(task_ids text[]) returns text
language plpgsql
set search_path from current
as $$
begin
    perform horsies_advance_nodes(horsies_settle_nodes(task_ids, false));
    return null;
exception when others then
    if left(sqlstate, 2) in ('25', '40', '53', '55', '57') then
        raise;  -- about the server, not about these workflows: the caller tries again
    end if;
    return sqlerrm;
end $$;
