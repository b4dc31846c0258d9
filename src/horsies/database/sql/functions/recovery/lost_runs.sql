-- horsies_lost_runs: RUNNING rows whose executor shows no sign of life, oldest sign first, with what a retry decision needs.
-- Caller: recovery/reaper.py, recovery/lost_runs.py, recovery/manual.py. Reads only; the write re-checks under the row lock.
create or replace function horsies_lost_runs(silent_for interval, batch_limit integer) returns table (
    id text, task_name text, owner_id text, claim text, attempt integer, task_options text, worker_hostname text,
    worker_pid integer, worker_process_name text, started_at timestamptz, last_heartbeat timestamptz, now_at timestamptz, host_key text
)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    current_at timestamptz := horsies_now();
begin
    return query
        select r.id::text, r.task_name::text, r.claimed_by_worker_id::text, horsies_claim_text(r.claimed_at), horsies_attempt_number(r.retry_count),
            r.task_options, r.worker_hostname::text, r.worker_pid, r.worker_process_name::text, horsies_readable(horsies_sign_of_life(r.started_at, current_at)), horsies_readable(b.last_at), current_at,
            horsies_host_key_of(r.claimed_by_worker_id)
        from horsies_tasks r
        left join lateral (select max(h.sent_at) as last_at from horsies_heartbeats h
            where h.task_id = r.id and h.role = 'runner' and h.sent_at >= coalesce(horsies_sign_of_life(r.started_at, current_at), '-infinity')
              and h.sent_at < current_at + interval '1 year') b on true
        where r.status = 'RUNNING'
          and coalesce(greatest(b.last_at, horsies_sign_of_life(r.started_at, current_at), horsies_sign_of_life(r.finalizing_at, current_at)), '-infinity')
              < current_at - silent_for
        order by b.last_at nulls first, r.started_at limit batch_limit;
end $$;
