-- What operators see: tasks that match a filter, one task in detail, queues, workers; signs of life.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: list_tasks
select f.is_match, f.reached_at, f.id, t.task_name, t.queue_name, t.status, t.priority, t.retry_count, t.max_retries,
    t.sent_at, horsies_readable(t.enqueued_at) as enqueued_at, t.next_retry_at, t.started_at,
    case when t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
        then coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) end as ended_at,
    t.error_code, t.claimed_by_worker_id, t.worker_hostname, t.worker_pid, t.is_workflow_task, t.tags, horsies_now() as read_at,
    p.attempt as progress_attempt, p.done, p.total, p.note, p.updated_at
from horsies_find_tasks(%(wanted)s, %(walk)s, %(before_at)s, %(before_id)s, %(match_limit)s, %(examine_limit)s)
    with ordinality f(id, reached_at, is_match, number)
left join horsies_tasks t on t.id = f.id and f.is_match
left join horsies_task_progress p on p.task_id = t.id
order by f.number;

-- name: find_ids
select f.is_match, f.reached_at, f.id
from horsies_find_tasks(%(wanted)s, %(walk)s, %(before_at)s, %(before_id)s, %(match_limit)s, %(examine_limit)s)
    with ordinality f(id, reached_at, is_match, number)
order by f.number;

-- name: count_found
select coalesce(sum(1) filter (where f.is_match), 0) as match_count, coalesce(bool_or(not f.is_match), false) as is_cut_short
from horsies_find_tasks(%(wanted)s, %(walk)s, %(before_at)s, %(before_id)s, %(match_limit)s, %(examine_limit)s) f;

-- name: task_row
-- What the row has beside what every reader of tasks gets; texts are cut at what people can read.
select t.args, t.kwargs, t.task_options, t.claimed_by_worker_id, t.claim_expires_at, t.cancel_requested_at, t.created_at, t.updated_at,
    t.is_held, t.is_workflow_task, n.workflow_id, n.node_id, w.name as workflow_name, w.status as workflow_status, horsies_now() as read_at,
    (select r.schedule_name from horsies_schedule_runs r
     where r.created_at between horsies_readable(t.created_at) - interval '1 minute' and horsies_readable(t.created_at) + interval '1 minute' and r.task_id = t.id limit 1) as schedule_name
from horsies_tasks t
left join horsies_workflow_tasks n on t.is_workflow_task and n.task_id = t.id
left join horsies_workflows w on w.id = n.workflow_id
where t.id = %(task_id)s limit 1;

-- name: task_logs
select l.attempt, l.log, l.truncated, l.created_at from horsies_task_logs l where l.task_id = %(task_id)s order by l.attempt limit 100;

-- name: queue_backlogs
select b.queue_name, b.due_count, b.later_count, b.oldest_due_at, b.next_due_at, horsies_now() as read_at
from horsies_queue_backlogs(%(count_limit)s) b;

-- name: in_flight_by_queue
select f.queue_name, count(*) filter (where f.status = 'RUNNING') as running_count, count(*) filter (where f.status = 'CLAIMED') as claimed_count
from (select t.queue_name, t.status from horsies_tasks t where t.status in ('CLAIMED', 'RUNNING')
      order by t.claimed_at limit %(row_limit)s) f
group by f.queue_name order by f.queue_name;

-- name: recent_ends
-- How tasks ended within the window, by queue or by task name: of each state the last ones, up to a limit, so that no window is
-- too large. The rate of a state is that of the time which its rows fill. The latency is from when the last attempt might have started until it did.
with e as materialized (
    select r.* from unnest(array['COMPLETED', 'FAILED', 'EXPIRED']) s(status) cross join lateral (
        select t.status, case when %(by)s = 'queue' then t.queue_name else t.task_name end as name, horsies_readable(t.enqueued_at) as enqueued_at,
            horsies_readable(t.started_at) as started_at,
            coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) as ended_at
        from horsies_tasks t
        where t.status = s.status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
          and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) >= horsies_now() - %(window)s
        order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) desc limit %(row_limit)s) r),
weights as (
    select w.status, 60 / greatest(date_part('epoch',
        case when count(*) = %(row_limit)s then horsies_now() - horsies_readable(min(w.ended_at)) else %(window)s end), 1) as per_minute
    from e w group by w.status)
select e.name, count(*) filter (where e.status = 'COMPLETED') as completed_count, count(*) filter (where e.status = 'FAILED') as failed_count,
    count(*) filter (where e.status = 'EXPIRED') as expired_count,
    percentile_cont(array[0.5, 0.95, 0.99]) within group (order by date_part('epoch', e.started_at - e.enqueued_at))
        filter (where e.started_at is not null and e.enqueued_at is not null) as start_latencies,
    percentile_cont(array[0.5, 0.95, 0.99]) within group (order by date_part('epoch', horsies_readable(e.ended_at) - e.started_at))
        filter (where e.started_at is not null) as run_times,
    sum(w.per_minute) as per_minute
from e join weights w on w.status = e.status
group by e.name order by e.name;

-- name: workers
-- The last snapshot of each worker that was seen within the window. A session lock proves life; a replica does not see it.
-- What no machine has, such as NaN or 1e308 MB, is not shown.
select s.worker_id, s.hostname, s.pid, s.processes, s.queues, s.tasks_running, s.tasks_claimed,
    case when abs(s.memory_usage_mb) < 1e15 then s.memory_usage_mb end, case when abs(s.children_memory_mb) < 1e15 then s.children_memory_mb end,
    case when abs(s.cpu_percent) < 1e15 then s.cpu_percent end, s.worker_started_at, s.snapshot_at, s.cluster_wide_cap, s.queue_max_concurrency,
    s.holds_lock and not pg_is_in_recovery() and not exists (
        select from pg_locks l
        where l.locktype = 'advisory' and l.granted and l.objsubid = 1
          and (l.classid::bigint << 32) | l.objid::bigint = horsies_lock_key('worker:' || s.worker_id)) as is_gone,
    horsies_now() as read_at, exists (select from horsies_worker_drains d where d.worker_id = s.worker_id) as is_draining, s.version, s.slots
from (select distinct on (w.worker_id) w.* from horsies_worker_states w
      where w.snapshot_at >= horsies_now() - %(window)s order by w.worker_id, w.snapshot_at desc) s
order by s.hostname, s.pid limit 10000;

-- name: worker_history
-- A worker over time, in steps that do not move with the clock. Of each step the newest 150 snapshots count: a window of a day has
-- no more, and no window reads more than 18,000 rows. What no machine has, such as NaN or 1e308, would spoil or end the average.
select b.at, avg(s.cpu_percent) filter (where abs(s.cpu_percent) < 1e15) as cpu_percent,
    avg(s.memory_usage_mb) filter (where abs(s.memory_usage_mb) < 1e15) as memory_mb,
    avg(s.children_memory_mb) filter (where abs(s.children_memory_mb) < 1e15) as children_memory_mb,
    avg(s.tasks_running)::double precision as running, avg(s.tasks_claimed)::double precision as claimed
from generate_series(date_bin(%(step)s, horsies_now() - %(window)s, timestamptz 'epoch'), horsies_now(), %(step)s) b(at)
cross join lateral (
    select w.cpu_percent, w.memory_usage_mb, w.children_memory_mb, w.tasks_running, w.tasks_claimed from horsies_worker_states w
    where w.worker_id = %(worker_id)s and w.snapshot_at >= b.at and w.snapshot_at < b.at + %(step)s
    order by w.snapshot_at desc limit 150) s
group by b.at order by b.at;

-- name: load_history
-- All workers over time. Each step takes the newest 2,000 snapshots, and of each worker the average, so that no window is too large.
select b.at, sum(s.running) as running, sum(s.slots) as slots
from generate_series(date_bin(%(step)s, horsies_now() - %(window)s, timestamptz 'epoch'), horsies_now(), %(step)s) b(at)
cross join lateral (
    select g.running, coalesce((select sum(k.slots::double precision) from jsonb_path_query(g.slots, '$.*.slots ? (@ >= 0 && @ < 1000000)') k(slots)), g.processes) as slots
    from (select avg(n.tasks_running)::double precision as running, (array_agg(n.slots))[1] as slots, avg(n.processes)::double precision as processes
          from (select w.worker_id, w.tasks_running, w.processes, w.slots from horsies_worker_states w
                where w.snapshot_at >= b.at and w.snapshot_at < b.at + %(step)s order by w.snapshot_at desc limit 2000) n
          group by n.worker_id) g) s
group by b.at order by b.at;

-- name: throughput
-- How many tasks ended in each step: of each state the last ones, up to a limit, and only steps that lie behind it as a whole.
with e as materialized (
    select s.status, r.ended_at, r.number
    from unnest(array['COMPLETED', 'FAILED', 'EXPIRED']) s(status) cross join lateral (
        select coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) as ended_at, row_number() over () as number
        from horsies_tasks t
        where t.status = s.status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
          and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) >= date_bin(%(step)s, horsies_now() - %(window)s, timestamptz 'epoch')
        order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) desc limit %(row_limit)s) r),
counted as (
    select date_bin(%(step)s, e.ended_at, timestamptz 'epoch') as at, count(*) filter (where e.status = 'COMPLETED') as completed,
        count(*) filter (where e.status = 'FAILED') as failed, count(*) filter (where e.status = 'EXPIRED') as expired
    from e group by 1)
select b.at, coalesce(c.completed, 0), coalesce(c.failed, 0), coalesce(c.expired, 0)
from generate_series(date_bin(%(step)s, horsies_now() - %(window)s, timestamptz 'epoch'), horsies_now(), %(step)s) b(at)
left join counted c on c.at = b.at
where b.at > coalesce((select max(e.ended_at) from e where e.number = %(row_limit)s), '-infinity')
order by b.at limit 100000;

-- name: worker_totals
-- Tasks by worker and state: all that are in flight, and of each ended state the last ones.
select f.claimed_by_worker_id as worker_id, f.status, count(*) as number from (
    select t.claimed_by_worker_id, t.status from horsies_tasks t where t.status in ('CLAIMED', 'RUNNING')
    order by t.claimed_at limit 2 * %(limit)s) f group by 1, 2
union all
select e.claimed_by_worker_id, e.status, count(*)
from unnest(array['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED']) s(status) cross join lateral (
    select t.claimed_by_worker_id, t.status from horsies_tasks t
    where t.status = s.status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
    order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) desc limit %(limit)s) e
group by 1, 2
order by 1, 2 limit 10000;

-- name: snapshot_ages
-- Snapshots by age: one row per bound, and one for all that are older; each counted up to a limit.
select a.position, (select count(*) from (
    select from horsies_worker_states w
    where w.snapshot_at > horsies_now() - coalesce((%(ages)s::interval[])[a.position], interval '1000 years')
      and w.snapshot_at <= horsies_now() - case when a.position > 1 then (%(ages)s::interval[])[a.position - 1] else interval '-1 year' end
    order by w.snapshot_at desc limit %(limit)s) s) as number
from generate_series(1, cardinality(%(ages)s::interval[]) + 1) a(position)
order by a.position;

-- name: tasks_in_flight
select t.id, t.task_name, t.queue_name, t.status, t.claimed_by_worker_id, t.started_at from horsies_tasks t
where t.status in ('CLAIMED', 'RUNNING') order by t.claimed_at limit %(row_limit)s;

-- name: workflow_counts
select w.status, count(*) as number from horsies_workflows w
where w.status in ('PENDING', 'RUNNING', 'PAUSED') and w.parent_workflow_id is null group by w.status limit 10;

-- name: queue_controls
select c.queue_name, c.paused_at, c.paused_by, c.pause_reason, c.max_concurrency from horsies_queue_controls c
order by c.queue_name limit 1000;

-- name: audit
select a.id, a.done_at, a.done_by, a.action, a.target, a.reason, a.details from horsies_audit a order by a.id desc limit %(limit)s;

-- name: count_ids
select count(*) from horsies_tasks t
where t.id = any (%(ids)s::text[]) and t.status || '' = any (%(statuses)s::text[]) and not t.is_workflow_task;

-- name: why_task
select t.id, t.task_name, t.queue_name, t.status, t.priority, horsies_readable(t.enqueued_at) as enqueued_at, t.next_retry_at, t.retry_count,
    t.max_retries, t.good_until, t.is_held, t.claimed_at, t.claimed_by_worker_id, t.claim_expires_at, t.started_at,
    coalesce(t.completed_at, t.failed_at, t.updated_at) as ended_at, t.error_code,
    left(coalesce(t.failed_reason, horsies_error_text(t.result, 'message')), 500) as failed_reason, t.worker_hostname, t.worker_pid,
    t.cancel_requested_at, w.id as workflow_id, w.name as workflow_name, w.status as workflow_status, horsies_now() as read_at
from horsies_tasks t
left join horsies_workflow_tasks n on t.is_workflow_task and n.task_id = t.id
left join horsies_workflows w on w.id = n.workflow_id
where t.id = %(task_id)s limit 1;

-- name: tasks_ahead
-- What starts before a waiting task of its queue: of better priority, and of the same but due earlier. Counts stop at a limit.
select
    (select count(*) from (
        select a.enqueued_at from horsies_tasks a
        where a.status = 'PENDING' and not a.is_held and a.queue_name = %(queue)s and a.priority < %(priority)s
        order by a.queue_name, a.priority, a.enqueued_at, a.id limit %(limit)s) b
     where b.enqueued_at <= horsies_now()) as better_count,
    (select count(*) from (
        select from horsies_tasks a
        where a.status = 'PENDING' and not a.is_held and a.queue_name = %(queue)s and a.priority = %(priority)s
          and (a.enqueued_at, a.id) < (%(enqueued_at)s, %(task_id)s)
        order by a.enqueued_at, a.id limit %(limit)s) e) as earlier_count;

-- name: known_names
select distinct on (s.worker_id) s.worker_id, s.task_names from horsies_worker_states s
where s.worker_id = any (%(worker_ids)s::text[]) and s.snapshot_at >= horsies_now() - interval '2 hours' and s.task_names is not null
order by s.worker_id, s.snapshot_at desc;

-- name: why_node
select n.workflow_id, w.name as workflow_name, w.status as workflow_status, n.task_index, n.node_id, n.task_name, n.kind, n.status, n.task_id,
    n.dependencies, n.join_type, n.wait_until, n.event_name, n.event_key, n.sub_workflow_id,
    s.name as sub_workflow_name, s.status as sub_workflow_status, w.max_in_flight, horsies_now() as read_at
from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
left join horsies_workflows s on s.id = n.sub_workflow_id
where n.workflow_id = %(workflow_id)s
  and (n.node_id = %(node_id)s or n.task_index = any (%(indexes)s::integer[]))
order by n.task_index limit 1000;

-- name: ping
select clock_timestamp() as database_time, current_setting('server_version') as server_version;

-- name: failure_groups
-- Failures that are alike, those with the latest first; message, traceback and id are those of the latest.
select f.group_key, f.task_name, f.error_code, count(*) as number, min(f.failed_at) as first_at, max(f.failed_at) as last_at,
    (array_agg(f.id order by f.failed_at desc))[1] as last_id, (array_agg(f.message order by f.failed_at desc))[1] as message,
    (array_agg(f.traceback order by f.failed_at desc))[1] as traceback, horsies_now() as read_at
from horsies_recent_failures(%(window)s, %(row_limit)s) f
group by f.group_key, f.task_name, f.error_code order by last_at desc limit %(limit)s;

-- name: failure_ids
select f.id from horsies_recent_failures(%(window)s, %(row_limit)s) f where f.group_key = %(group_key)s order by f.id limit %(row_limit)s;

-- name: now
select horsies_now();

-- name: queue_history
-- What no task has waited, such as NaN or infinity, is not shown.
select h.starts_at, h.queue_name, h.completed_count, h.failed_count, h.expired_count, h.start_latencies, h.run_times, h.due_count,
    case when abs(h.oldest_due_s) < 1e15 then h.oldest_due_s end
from horsies_queue_history h
where h.step_s = %(step_s)s and h.starts_at >= %(since)s and h.starts_at < %(until)s
  and (%(queue)s::text is null or h.queue_name in (%(queue)s, ''))
order by h.starts_at limit 200000;
