-- horsies_requeue_tasks: FAILED, CANCELLED or (if asked) COMPLETED -> PENDING (T15), by a user's call.
-- Caller: operations/requeue.py.  Locks: horsies_tasks, by id.
-- Of tasks with one unique key only the newest goes back; one whose key is taken meanwhile is refused, and the others go on.
create or replace function horsies_requeue_tasks(task_ids text[], include_completed boolean)
returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    one_id text;
begin
    return query select r.task_id, r.outcome from horsies_requeue_if_keys_differ(task_ids, include_completed) r;
exception when unique_violation then
    perform from unnest(task_ids) i(id) join horsies_tasks t on t.id between i.id and i.id
    order by i.id collate "C" for update of t;
    for one_id in
        select i.id from unnest(task_ids) i(id) left join horsies_tasks t on t.id between i.id and i.id
        group by i.id order by max(t.created_at) desc nulls last, i.id collate "C" desc
    loop
        begin
            return query select r.task_id, r.outcome from horsies_requeue_if_keys_differ(array[one_id], include_completed) r;
        exception when unique_violation then
            return query select one_id, 'refused';
        end;
    end loop;
end $$;

-- horsies_requeue_if_keys_differ: the same; raises unique_violation when two of them want one unique key, or another takes it meanwhile.
-- Caller: horsies_requeue_tasks, under its planner settings.  Locks: as that.
-- Attempt numbers go on: retry_count grows when the last attempt ran, and max_retries with it, so the policy's budget is whole again.
create or replace function horsies_requeue_if_keys_differ(task_ids text[], include_completed boolean)
returns table (task_id text, outcome text)
language plpgsql
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with held as (
            select t.id, t.queue_name,
                (select max(a.attempt) from horsies_task_attempts a where a.task_id = t.id) as last_attempt
            from unnest(task_ids) i(id) join horsies_tasks t on t.id between i.id and i.id
            where (t.status || '' in ('FAILED', 'CANCELLED') or (include_completed and t.status || '' = 'COMPLETED'))
              and not t.is_workflow_task and (t.good_until is null or t.good_until > now_at)
              and (t.unique_key is null or t.unique_stored or not exists (
                    select from horsies_tasks h
                    where h.task_name = t.task_name and h.unique_key = t.unique_key and h.id <> t.id
                      and (h.unique_stored or h.status in ('PENDING', 'CLAIMED', 'RUNNING'))))
            order by i.id collate "C" for update of t
        ), requeued as (
            update horsies_tasks t set status = 'PENDING', claimed = false,
                -- The policy's own number, read as text: options written by hand need not be JSON.
                max_retries = case when t.max_retries = 0 then 0 else coalesce(h.last_attempt, 0)
                    + coalesce(substring(t.task_options from '"max_retries": ?([0-9]{1,3})')::integer, t.max_retries - t.retry_count) end,
                retry_count = coalesce(h.last_attempt, 0),
                enqueued_at = now_at, result = null, error_code = null, failed_reason = null,
                completed_at = null, failed_at = null, started_at = null, next_retry_at = null,
                claimed_at = null, claimed_by_worker_id = null, claim_expires_at = null,
                worker_pid = null, worker_hostname = null, worker_process_name = null,
                finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = now_at
            from held h where t.id between h.id and h.id
            returning t.id, t.queue_name
        ), told as (
            select pg_notify('task_new', r.id), case when octet_length('task_queue_' || r.queue_name) <= 63
                then pg_notify('task_queue_' || r.queue_name, r.id) end
            from requeued r where horsies_may_notify()
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'refused')
        from (select i.id, null as outcome from unnest(task_ids) i(id)
              union all
              select r.id, 'requeued' from requeued r) a
        where (select count(*) from told) >= 0
        group by a.id;
end $$;
