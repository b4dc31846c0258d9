-- Tasks that match a filter; signs of life.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: matching_ids
select t.id from horsies_tasks t
where t.status = any (%(statuses)s::text[])
  and (%(task_name)s::text is null or t.task_name = %(task_name)s)
  and (%(task_names)s::text[] is null or t.task_name = any (%(task_names)s))
  and (%(queue_name)s::text is null or t.queue_name = %(queue_name)s)
  and (%(tag)s::text is null or %(tag)s = any (t.tags))
  and not t.is_workflow_task and t.id > %(after)s
order by t.id limit %(batch)s;

-- name: count_matching
select count(*) from horsies_tasks t
where t.status = any (%(statuses)s::text[])
  and (%(task_name)s::text is null or t.task_name = %(task_name)s)
  and (%(task_names)s::text[] is null or t.task_name = any (%(task_names)s))
  and (%(queue_name)s::text is null or t.queue_name = %(queue_name)s)
  and (%(tag)s::text is null or %(tag)s = any (t.tags))
  and not t.is_workflow_task;

-- name: ping
select clock_timestamp() as database_time, current_setting('server_version') as server_version;
