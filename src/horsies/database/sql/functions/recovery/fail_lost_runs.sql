-- horsies_fail_lost_runs: RUNNING -> FAILED (T9) or PENDING (T8) for runs whose executor is gone, each with its attempt row.
-- Caller: recovery/reaper.py, recovery/lost_runs.py.  Locks: horsies_tasks, by id, skipping locked rows.
-- Staleness is judged again under the lock: a heartbeat or an outcome that arrived meanwhile wins.
create or replace function horsies_fail_lost_runs(
    silent_for interval, task_ids text[], owner_ids text[], claims timestamptz[], attempts integer[], results text[],
    error_messages text[], failed_reasons text[], retry_delays double precision[]
) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    lost record;
    will_retry boolean;
    retry_at timestamptz;
begin
    for lost in
        select t.*, i.result as new_result, i.error_message, i.reason, i.delay
        from unnest(task_ids, owner_ids, claims, attempts, results, error_messages, failed_reasons, retry_delays)
            i(task_id, owner_id, claim, attempt, result, error_message, reason, delay)
        join horsies_tasks t on t.id = i.task_id
        where t.status || '' = 'RUNNING' and t.claimed_by_worker_id is not distinct from i.owner_id
          and t.claimed_at is not distinct from i.claim and t.retry_count + 1 = i.attempt
          and coalesce(greatest(t.started_at, t.finalizing_at, (select max(h.sent_at) from horsies_heartbeats h
                where h.task_id = t.id and h.role = 'runner')), '-infinity') < now_at - silent_for
        order by t.id for update of t skip locked
    loop
        retry_at := now_at + make_interval(secs => lost.delay);
        will_retry := coalesce(lost.delay is not null and lost.retry_count < lost.max_retries
            and (lost.good_until is null or retry_at < lost.good_until)
            and (not lost.is_workflow_task or horsies_stopped_workflow(lost.id) is distinct from 'CANCELLED'), false);
        insert into horsies_task_attempts (task_id, attempt, outcome, will_retry, started_at, finished_at, error_code,
            error_message, failed_reason, worker_id, worker_hostname, worker_pid, worker_process_name)
        values (lost.id, lost.retry_count + 1, 'FAILED', will_retry, coalesce(lost.started_at, now_at), now_at, 'WORKER_CRASHED',
            lost.error_message, lost.reason, lost.claimed_by_worker_id, lost.worker_hostname, lost.worker_pid,
            lost.worker_process_name);
        if will_retry then
            update horsies_tasks t set status = 'PENDING', retry_count = t.retry_count + 1, next_retry_at = retry_at,
                enqueued_at = retry_at, claimed_at = null, claimed_by_worker_id = null, started_at = null,
                worker_pid = null, worker_hostname = null, worker_process_name = null,
                finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = now_at
            where t.id = lost.id;
        else
            update horsies_tasks t set status = 'FAILED', failed_at = now_at, result = lost.new_result,
                error_code = 'WORKER_CRASHED', failed_reason = lost.reason,
                finalizing_at = null, finalizing_by_worker_id = null, updated_at = now_at
            where t.id = lost.id;
        end if;
        return query select lost.id::text, case when will_retry then 'retried' else 'failed' end;
    end loop;
end $$;
