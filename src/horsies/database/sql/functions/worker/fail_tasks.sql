-- horsies_fail_tasks: RUNNING -> FAILED (T7) or RUNNING -> PENDING (retry, T8) for a batch of one worker's claims, each with its attempt row.
-- What would be tried again although someone asked for its end is CANCELLED instead (T16).
-- Caller: worker/completer.py, which sorts by id.  Locks: horsies_tasks, by id.
-- A retry happens when a delay is given, retries are left and it would start strictly before the deadline; the database's clock decides.
create or replace function horsies_fail_tasks(
    owner_id text, task_ids text[], claims timestamptz[], attempts integer[], results text[],
    error_codes text[], error_messages text[], failed_reasons text[], outcomes text[], retry_delays double precision[]
) returns table (task_id text, outcome text, retry_after double precision)
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with judged as (
            select t.id, i.*, t.started_at, t.worker_hostname, t.worker_pid, t.worker_process_name,
                now_at + make_interval(secs => i.delay) as retry_at,
                t.cancel_requested_at is not null as is_unwanted,
                i.delay is not null and t.retry_count < t.max_retries
                    and (t.good_until is null or now_at + make_interval(secs => i.delay) < t.good_until)
                    and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is distinct from 'CANCELLED') as may_retry
            from unnest(task_ids, claims, attempts, results, error_codes, error_messages, failed_reasons, outcomes, retry_delays)
                i(task_id, claim, attempt, result, error_code, error_message, failed_reason, outcome, delay)
            join horsies_tasks t on t.id between i.task_id and i.task_id
            where t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id
              and t.claimed_at = i.claim and horsies_attempt_number(t.retry_count) = i.attempt
            order by i.task_id collate "C" for update of t
        ), held as (
            select j.*, case when not j.may_retry then 'FAILED' when j.is_unwanted then 'CANCELLED' else 'PENDING' end as new_status,
                j.may_retry and not j.is_unwanted as will_retry
            from judged j
        ), ended as (
            update horsies_tasks t set
                status = h.new_status,
                failed_at = case when h.will_retry then null else now_at end,
                result = case h.new_status when 'FAILED' then h.result when 'CANCELLED' then horsies_cancelled_result(t.id) end,
                error_code = case when h.new_status = 'FAILED' then h.error_code end,
                failed_reason = case when h.new_status = 'FAILED' then h.failed_reason end,
                retry_count = t.retry_count + case when h.will_retry then 1 else 0 end,
                next_retry_at = case when h.will_retry then h.retry_at else t.next_retry_at end,
                enqueued_at = case when h.will_retry then h.retry_at else t.enqueued_at end,
                claimed_at = case when h.will_retry then null else t.claimed_at end,
                claimed_by_worker_id = case when h.will_retry then null else t.claimed_by_worker_id end,
                started_at = case when h.will_retry then null else t.started_at end,
                worker_pid = case when h.will_retry then null else t.worker_pid end,
                worker_hostname = case when h.will_retry then null else t.worker_hostname end,
                worker_process_name = case when h.will_retry then null else t.worker_process_name end,
                finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = now_at
            from held h where t.id between h.id and h.id
        ), recorded as (
            insert into horsies_task_attempts (task_id, attempt, outcome, will_retry, started_at, finished_at, error_code,
                error_message, failed_reason, traceback, worker_id, worker_hostname, worker_pid, worker_process_name)
            select h.id, h.attempt, h.outcome, h.will_retry, h.started_at, now_at, h.error_code,
                h.error_message, h.failed_reason, horsies_traceback_of(h.result), owner_id, h.worker_hostname, h.worker_pid, h.worker_process_name
            from held h
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'claim_lost'), max(a.retry_after)
        from (select i.id, null as outcome, null::double precision as retry_after from unnest(task_ids) i(id)
              union all
              select h.id, case h.new_status when 'PENDING' then 'retried' when 'FAILED' then 'failed' else 'cancelled' end,
                  case when h.will_retry then h.delay end
              from held h) a
        group by a.id;
end $$;
