-- horsies_cancel_running_tasks: RUNNING -> CANCELLED (T16) for runs stopped on request, each with its attempt row; one without
-- a message had not begun, and has none.
-- Caller: worker/completer.py, which sorts by id.  Locks: horsies_tasks, by id.
create or replace function horsies_cancel_running_tasks(
    owner_id text, task_ids text[], claims timestamptz[], attempts integer[], results text[], error_messages text[]
) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with ended as (
            update horsies_tasks t set status = 'CANCELLED', failed_at = now_at, result = i.result,
                finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = now_at
            from unnest(task_ids, claims, attempts, results, error_messages) i(id, claim, attempt, result, message)
            where t.id between i.id and i.id and t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id
              and t.claimed_at = i.claim and horsies_attempt_number(t.retry_count) = i.attempt
            returning t.id, i.attempt, i.message, t.started_at, t.worker_hostname, t.worker_pid, t.worker_process_name
        ), recorded as (
            insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, error_code,
                error_message, worker_id, worker_hostname, worker_pid, worker_process_name)
            select e.id, e.attempt, 'FAILED', e.started_at, now_at, 'TASK_CANCELLED', e.message,
                owner_id, e.worker_hostname, e.worker_pid, e.worker_process_name
            from ended e where e.message is not null
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'claim_lost')
        from (select i.id, null as outcome from unnest(task_ids) i(id)
              union all
              select e.id, 'cancelled' from ended e) a
        group by a.id;
end $$;

-- horsies_interrupt_tasks: RUNNING -> PENDING without counting an attempt (T17): runs interrupted by a drain, and runs
-- whose user code never began. One whose end was asked for meanwhile, or whose workflow was cancelled, is CANCELLED instead (T14).
-- Caller: worker/completer.py, which sorts by id.  Locks: horsies_tasks, by id.
create or replace function horsies_interrupt_tasks(
    owner_id text, task_ids text[], claims timestamptz[], attempts integer[]
) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with returned as (
            update horsies_tasks t set status = case when t.cancel_requested_at is null
                    and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is distinct from 'CANCELLED') then 'PENDING' else 'CANCELLED' end,
                claimed = false, claimed_at = null, claimed_by_worker_id = null,
                claim_expires_at = null, started_at = null, worker_pid = null, worker_hostname = null,
                worker_process_name = null, finalizing_at = null, finalizing_by_worker_id = null,
                cancel_requested_at = null, updated_at = now_at
            from unnest(task_ids, claims, attempts) i(id, claim, attempt)
            where t.id between i.id and i.id and t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id
              and t.claimed_at = i.claim and horsies_attempt_number(t.retry_count) = i.attempt
            returning t.id, t.queue_name, t.status
        ), told as (
            select pg_notify('horsies_tasks_returned', r.queue_name), pg_notify('task_queue_' || r.queue_name, r.id) from returned r
            where r.status = 'PENDING' and octet_length('task_queue_' || r.queue_name) <= 63 and horsies_may_notify()
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'claim_lost')
        from (select i.id, null as outcome from unnest(task_ids) i(id)
              union all
              select r.id, case r.status when 'PENDING' then 'interrupted' else 'cancelled' end from returned r) a
        where (select count(*) from told) >= 0
        group by a.id;
end $$;
