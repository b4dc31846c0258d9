-- What recovery shows to people.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

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

-- name: named_tasks
-- What hooks are told of tasks beside their ids.
-- Caller: operations/cancel.py, recovery/lost_runs.py.
select t.id::text, t.task_name::text, t.queue_name::text from horsies_tasks t where t.id = any (%(task_ids)s) order by t.id;
