-- What our own functions write they tell after its commit (decision 0015). The triggers are not called for it at all: a call that only finds
-- that it has nothing to say costs as much as the row's index entries. For batches that is little; for a single send it is a tenth.
create or replace trigger horsies_task_notify_trigger_insert after insert on horsies_tasks
    referencing new table as inserted
    for each statement when (current_setting('horsies.is_told_later', true) is distinct from 'on')
    execute function horsies_notify_task_changes_insert();
create or replace trigger horsies_task_status_notify_trigger_update after update on horsies_tasks
    referencing old table as before new table as after
    for each statement when (current_setting('horsies.is_told_later', true) is distinct from 'on')
    execute function horsies_notify_task_status_change_update();
