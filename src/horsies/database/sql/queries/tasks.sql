-- Reads about tasks. Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: read_results
select t.id, t.task_name, t.status, t.result, t.error_code
from horsies_tasks t where t.id = any (%(ids)s::text[]);

-- name: read_task
select t.id, t.task_name, t.status, t.queue_name, t.priority, t.retry_count, t.max_retries, t.next_retry_at, t.sent_at,
    t.enqueued_at, t.claimed_at, t.started_at, t.completed_at, t.failed_at, t.worker_hostname, t.worker_pid,
    t.worker_process_name, t.error_code, t.unique_key, t.rerun_of, t.good_until, t.tags,
    case when %(with_result)s then t.result end as result,
    case when %(with_failed_reason)s then t.failed_reason end as failed_reason,
    case when %(with_log)s then (select l.log from horsies_task_logs l where l.task_id = t.id
        order by l.attempt desc limit 1) end as log
from horsies_tasks t where t.id = %(task_id)s;

-- name: read_attempts
select a.task_id, a.attempt, a.outcome, a.will_retry, a.started_at, a.finished_at, a.error_code, a.error_message,
    a.failed_reason, a.worker_id, a.worker_hostname, a.worker_pid, a.worker_process_name
from horsies_task_attempts a where a.task_id = %(task_id)s order by a.attempt desc limit 1000;

-- name: expired_tasks
select t.id, t.task_name, t.queue_name, t.priority, t.sent_at, t.enqueued_at, t.good_until,
    horsies_now() - t.good_until as expired_for
from horsies_tasks t
where t.status = 'PENDING' and t.good_until is not null and t.good_until <= horsies_now()
order by t.good_until limit 10000;

-- name: worker_stats
select t.worker_hostname, t.worker_pid, t.worker_process_name, count(*) as active_tasks,
    min(t.started_at) as oldest_task_start,
    max((select max(h.sent_at) from horsies_heartbeats h where h.task_id = t.id and h.role = 'runner')) as latest_heartbeat
from horsies_tasks t where t.status = 'RUNNING'
group by t.worker_hostname, t.worker_pid, t.worker_process_name
order by active_tasks desc limit 10000;

-- name: matching_ids
select t.id from horsies_tasks t
where t.status = any (%(statuses)s::text[])
  and (%(task_name)s::text is null or t.task_name = %(task_name)s)
  and (%(queue_name)s::text is null or t.queue_name = %(queue_name)s)
  and (%(tag)s::text is null or %(tag)s = any (t.tags))
  and not t.is_workflow_task and t.id > %(after)s
order by t.id limit %(batch)s;

-- name: count_matching
select count(*) from horsies_tasks t
where t.status = any (%(statuses)s::text[])
  and (%(task_name)s::text is null or t.task_name = %(task_name)s)
  and (%(queue_name)s::text is null or t.queue_name = %(queue_name)s)
  and (%(tag)s::text is null or %(tag)s = any (t.tags))
  and not t.is_workflow_task;

-- name: rerun_task
insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, good_until,
    max_retries, task_options, enqueue_sha, rerun_of, tags)
select %(new_id)s, t.task_name, t.queue_name, t.priority, t.args, t.kwargs, %(sent_at)s, horsies_now(), %(good_until)s,
    coalesce(substring(t.task_options from '"max_retries": ?(\d{1,3})')::integer, 0),
    t.task_options, t.enqueue_sha, t.id, t.tags
from horsies_tasks t
where t.id = %(task_id)s and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED') and not t.is_workflow_task
returning id;

-- name: ping
select clock_timestamp() as database_time, current_setting('server_version') as server_version;

-- name: insert_task
-- One plain row, for half the server's work of horsies_enqueue_tasks; an error when the id is taken.
insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, good_until, max_retries,
    task_options, enqueue_sha, created_at, updated_at)
values (%(id)s, %(task_name)s, %(queue_name)s, %(priority)s, %(args)s, %(kwargs)s, %(sent_at)s,
    coalesce(%(enqueued_at)s, horsies_now() + make_interval(secs => %(delay_s)s), horsies_now()), %(good_until)s, %(max_retries)s,
    %(task_options)s, %(enqueue_sha)s, horsies_now(), horsies_now());

-- name: copy_tasks
copy horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, good_until, max_retries, task_options,
    enqueue_sha) from stdin;
