-- horsies_start_one: PENDING -> RUNNING for one task by its id, whatever waits before it; no row when it is not due.
-- Caller: worker/inline.py.  Locks: horsies_tasks.
create or replace function horsies_start_one(wanted_id text, owner_id text, hostname text, own_pid integer)
returns table (
    id text, queue_name text, priority integer, lane integer, task_name text, args text, kwargs text, attempt integer,
    claim text, enqueued_at text, task_options text, is_workflow_task boolean, worker_pid integer, ahead_number bigint
)
language plpgsql
set search_path from current
set datestyle = 'ISO'  -- for the mark
set timezone = 'UTC'
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
begin
    return query
        update horsies_tasks t set status = 'RUNNING', claimed = false, claimed_at = now_at, started_at = now_at,
            claimed_by_worker_id = owner_id, claim_expires_at = null, next_retry_at = null, worker_pid = own_pid, worker_hostname = hostname,
            worker_process_name = 'worker-' || own_pid, updated_at = now_at
        where t.id = wanted_id and t.status = 'PENDING' and not t.is_held and t.enqueued_at <= now_at
          and (t.good_until is null or t.good_until > now_at)
        returning t.id::text, t.queue_name::text, t.priority, 1, t.task_name::text, t.args, t.kwargs, horsies_attempt_number(t.retry_count),
            horsies_claim_text(t.claimed_at), horsies_mark_text(t.enqueued_at), t.task_options, t.is_workflow_task, t.worker_pid,
            t.ahead_number;
end $$;
