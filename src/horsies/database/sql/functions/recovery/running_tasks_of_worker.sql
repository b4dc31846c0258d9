-- horsies_running_tasks_of_worker: RUNNING rows of one worker, in the shape of horsies_lost_runs.
-- Caller: recovery/lost_runs.py, recovery/death_watch.py, for a dead worker. Reads only.
create or replace function horsies_running_tasks_of_worker(owner text, batch_limit integer) returns table (
    id text, task_name text, owner_id text, claim text, attempt integer, task_options text, worker_hostname text,
    worker_pid integer, worker_process_name text, started_at timestamptz, last_heartbeat timestamptz, now_at timestamptz, host_key text
)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        select r.id::text, r.task_name::text, r.claimed_by_worker_id::text, horsies_claim_text(r.claimed_at), horsies_attempt_number(r.retry_count),
            r.task_options, r.worker_hostname::text, r.worker_pid, r.worker_process_name::text, horsies_readable(r.started_at),
            null::timestamptz, horsies_now(), horsies_host_key_of(owner)
        from horsies_tasks r
        where r.status = 'RUNNING' and r.claimed_by_worker_id = owner
        order by r.id limit batch_limit;
end $$;
