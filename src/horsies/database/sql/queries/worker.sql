-- A worker's own rows and locks.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: insert_worker_state
insert into horsies_worker_states (worker_id, snapshot_at, hostname, pid, processes, queues, tasks_running, tasks_claimed,
    memory_usage_mb, children_memory_mb, cpu_percent, memory_percent, max_claim_batch, max_claim_per_worker,
    cluster_wide_cap, queue_priorities, queue_max_concurrency, recovery_config, worker_started_at, pid_started_at, holds_lock, host_key,
    task_names, definition_keys, version, slots)
values (%(worker_id)s, horsies_now(), %(hostname)s, %(pid)s, %(processes)s, %(queues)s, %(tasks_running)s, %(tasks_claimed)s,
    %(memory_usage_mb)s, %(children_memory_mb)s, %(cpu_percent)s, %(memory_percent)s, %(max_claim_batch)s,
    %(max_claim_per_worker)s, %(cluster_wide_cap)s, %(queue_priorities)s, %(queue_max_concurrency)s, %(recovery_config)s,
    %(worker_started_at)s, %(pid_started_at)s, %(holds_lock)s, %(host_key)s, %(task_names)s, %(definition_keys)s,
    %(version)s, %(slots)s)
returning exists (select from horsies_worker_drains d where d.worker_id = %(worker_id)s) as is_drained,
    (select count(distinct s.worker_id) from horsies_worker_states s
        where s.snapshot_at >= horsies_now() - interval '15 seconds' and s.worker_id <> %(worker_id)s) as peer_count,
    (select count(distinct s.worker_id) from horsies_worker_states s
        where s.snapshot_at >= horsies_now() - interval '8 seconds' and s.worker_id <> %(worker_id)s
          and s.tasks_running = 0 and s.tasks_claimed = 0) as idle_peer_count,
    not exists (select from horsies_worker_states s
        where s.snapshot_at >= horsies_now() - interval '2 minutes' and s.worker_id <> %(worker_id)s) as is_alone;

-- name: hold_worker_lock
select pg_try_advisory_lock(horsies_lock_key('worker:' || %(worker_id)s));

-- name: cancel_requests
select t.id from horsies_tasks t
where t.claimed_by_worker_id = %(worker_id)s and t.cancel_requested_at is not null and t.status = 'RUNNING'
limit 1000;

-- name: unknown_tasks
select w.task_name, count(*) from (
    select t.task_name from horsies_tasks t
    where t.status = 'PENDING' and not t.is_held and t.queue_name = any (%(queues)s::text[]) and t.enqueued_at <= horsies_now()
    limit 10000) w
where not w.task_name = any (%(names)s::text[])
group by w.task_name order by count(*) desc limit 20;

-- name: stored_ends
select a.task_id::text, case when a.outcome = 'COMPLETED' then 'completed' when a.error_code = 'TASK_CANCELLED' then 'cancelled'
    when a.will_retry then 'retried' else 'failed' end as outcome
from unnest(%(task_ids)s::text[], %(attempts)s::integer[]) i(id, attempt)
join horsies_task_attempts a on a.task_id = i.id and a.attempt = i.attempt
where a.worker_id = %(worker_id)s;

-- name: names_known_to_peers
-- Workers store the names they know once an hour, and a sign of life every five seconds.
select n.name from unnest(%(names)s::text[]) n(name)
where exists (
    select from horsies_worker_states s
    where s.snapshot_at >= horsies_now() - interval '2 hours' and n.name = any (s.task_names) and s.worker_id <> %(worker_id)s
      and exists (
        select from horsies_worker_states l
        where l.worker_id = s.worker_id and l.snapshot_at >= horsies_now() - interval '30 seconds'));
