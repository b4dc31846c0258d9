-- Every finished task stores an attempt: one index on it and no foreign key (decision 0012). Attempts go with their task by trigger.

alter table horsies_task_attempts
    drop constraint if exists horsies_task_attempts_task_id_fkey,
    drop constraint if exists horsies_task_attempts_pkey,
    replica identity using index horsies_task_attempts_task_id_attempt_key;
alter sequence horsies_task_attempts_id_seq owned by horsies_task_attempts.id;
drop index if exists horsies_task_attempts_finished_at_idx;

-- Here it takes a moment at most; a larger table gets it from `horsies migrate`, which holds nobody up meanwhile.
do $$
begin
    if pg_relation_size('horsies_task_attempts') < 32 * 1024 * 1024 then
        create index if not exists horsies_task_attempts_finished_at_brin on horsies_task_attempts using brin (finished_at);
    end if;
end $$;

drop trigger if exists horsies_task_delete_trigger on horsies_tasks;
create trigger horsies_task_delete_trigger after delete on horsies_tasks
    referencing old table as deleted for each statement execute function horsies_delete_attempts();
drop trigger if exists horsies_task_truncate_trigger on horsies_tasks;
create trigger horsies_task_truncate_trigger after truncate on horsies_tasks
    for each statement execute function horsies_truncate_attempts();
drop trigger if exists horsies_task_rename_trigger on horsies_tasks;
create trigger horsies_task_rename_trigger after update of id on horsies_tasks
    for each row when (new.id <> old.id) execute function horsies_rename_attempts();
