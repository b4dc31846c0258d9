-- The old table comes back as it was; tasks that were made since stay in the engine.
drop view if exists django_simple_queue_task cascade;
drop function if exists django_simple_queue_write() cascade;
drop function if exists django_simple_queue_is_raw();
drop function if exists django_simple_queue_error(text, text, text);
drop function if exists django_simple_queue_value(text);
drop index if exists django_simple_queue_task_status_idx;
drop function if exists django_simple_queue_status(text);
drop table if exists django_simple_queue_output;
alter table django_simple_queue_task_legacy rename to django_simple_queue_task;
