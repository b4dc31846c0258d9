-- horsies_unlocked_tasks: those of these tasks that nobody else has locked; the others answer nothing.
-- Caller: worker/completer.py after a batch met a lock.  Locks: horsies_tasks, skipping locked rows, until the end of the statement.
create or replace function horsies_unlocked_tasks(task_ids text[]) returns table (task_id text)
language plpgsql
set search_path from current
as $$
begin
    return query select t.id::text from horsies_tasks t where t.id = any (task_ids) order by t.id for update skip locked;
end $$;
