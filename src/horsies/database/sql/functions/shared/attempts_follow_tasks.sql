-- Attempts go with their task, in its transaction and however it is deleted: a foreign key would check every finished task (decision 0012).
-- Whoever adds an attempt has locked its task's row, so a deletion that comes at the same time waits for it and sees the attempt.

create or replace function horsies_delete_attempts() returns trigger language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    delete from horsies_task_attempts a where a.task_id = any (array(select d.id from deleted d));
    return null;
end $$;

create or replace function horsies_truncate_attempts() returns trigger language plpgsql
set search_path from current
as $$
begin
    truncate horsies_task_attempts;
    return null;
end $$;

-- A task that gets another id by hand keeps its history.
create or replace function horsies_rename_attempts() returns trigger language plpgsql
set search_path from current
as $$
begin
    update horsies_task_attempts a set task_id = new.id where a.task_id = old.id;
    return null;
end $$;
