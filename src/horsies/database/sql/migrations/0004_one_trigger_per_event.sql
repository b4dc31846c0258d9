-- One trigger per event tells all channels: the first release had two of them, each with its own walk over the changed rows.

drop trigger if exists horsies_task_status_notify_trigger_insert on horsies_tasks;
drop trigger if exists horsies_task_notify_trigger_update on horsies_tasks;
drop function if exists horsies_notify_task_status_change_insert();
drop function if exists horsies_notify_task_changes_update();
