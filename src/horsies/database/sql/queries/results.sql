-- Reads of one task.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

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
        order by l.attempt desc limit 1) end as log,
    p.attempt as progress_attempt, p.done, p.total, p.note, p.updated_at
from horsies_tasks t left join horsies_task_progress p on p.task_id = t.id where t.id = %(task_id)s;

-- name: read_attempts
select a.task_id, a.attempt, a.outcome, a.will_retry, a.started_at, a.finished_at, a.error_code, a.error_message,
    a.failed_reason, a.worker_id, a.worker_hostname, a.worker_pid, a.worker_process_name, a.traceback
from horsies_task_attempts a where a.task_id = %(task_id)s order by a.attempt desc limit 1000;

-- name: why_unfinished
select t.status, t.queue_name, t.started_at, t.enqueued_at > horsies_now() as is_early,
    exists (select from horsies_worker_states w
            where w.snapshot_at > horsies_now() - interval '30 seconds' and t.queue_name = any (w.queues)
              -- A worker that has just stopped has let go of its session lock; a replica does not see locks.
              and (not w.holds_lock or pg_is_in_recovery() or exists (
                  select from pg_locks l
                  where l.locktype = 'advisory' and l.granted and l.objsubid = 1
                    and (l.classid::bigint << 32) | l.objid::bigint = horsies_lock_key('worker:' || w.worker_id)))) as is_served
from horsies_tasks t where t.id = %(task_id)s;
