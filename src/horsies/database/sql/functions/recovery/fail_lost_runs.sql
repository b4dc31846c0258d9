-- horsies_fail_lost_runs: RUNNING -> FAILED (T9) or PENDING (T8) for runs whose executor is gone, each with its attempt row; one that
-- would be tried again although someone asked for its end is CANCELLED (T16). A run that its worker had taken ahead and was not
-- permitted to begin goes back instead, without an attempt, and answers 'returned'.
-- Caller: recovery/lost_runs.py.  Locks: workflows; horsies_tasks, by id, skipping locked rows.
-- Staleness is judged again under the lock: a heartbeat or an outcome that arrived meanwhile wins.
-- A row that cannot be ended answers 'stuck' with the reason and keeps no other from its end.
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
    last_attempt integer;
    may_retry boolean;
    new_status text;
    retry_at timestamptz;
    of_workflows text[] := array(select t.id::text from horsies_tasks t where t.id = any (task_ids) and t.is_workflow_task);
    permitted jsonb;  -- of owners whose runs lie beyond: the numbers per lane, or null while they cannot be told
begin
    if of_workflows <> '{}' then
        perform horsies_lock_workflows_of_tasks(of_workflows);
    end if;
    select coalesce(jsonb_object_agg(o.owner_id, horsies_void_ahead(o.owner_id)), '{}') into permitted from (
        select distinct t.claimed_by_worker_id as owner_id from horsies_tasks t
        where t.id = any (task_ids) and t.status || '' = 'RUNNING' and t.claimed_by_worker_id = any (owner_ids)
          and t.ahead_number > (horsies_permitted_numbers(t.claimed_by_worker_id))[1 + (t.ahead_number >> 56)]) o;
    for lost in
        select t.*, i.result as new_result, i.error_message, i.reason, i.delay
        from unnest(task_ids, owner_ids, claims, attempts, results, error_messages, failed_reasons, retry_delays)
            i(task_id, owner_id, claim, attempt, result, error_message, reason, delay)
        join horsies_tasks t on t.id between i.task_id and i.task_id
        where t.status || '' = 'RUNNING' and t.claimed_by_worker_id is not distinct from i.owner_id
          and t.claimed_at is not distinct from i.claim and horsies_attempt_number(t.retry_count) = i.attempt
          and coalesce(greatest(horsies_sign_of_life(t.started_at, now_at), horsies_sign_of_life(t.finalizing_at, now_at), (select max(h.sent_at)
                from horsies_heartbeats h where h.task_id = t.id and h.role = 'runner' and h.sent_at < now_at + interval '1 year')), '-infinity')
              < now_at - silent_for
        order by i.task_id collate "C" for update of t skip locked
    loop
        if lost.ahead_number is not null and permitted ? lost.claimed_by_worker_id then
            continue when permitted -> lost.claimed_by_worker_id = 'null';
            if lost.ahead_number > (permitted -> lost.claimed_by_worker_id ->> (lost.ahead_number >> 56)::integer)::bigint then
                perform horsies_return_unbegun_run(lost.id);
                return query select lost.id::text, 'returned';
                continue;
            end if;
        end if;
        begin
            -- A row reset by hand goes on counting behind the attempts it has.
            select max(a.attempt) into last_attempt from horsies_task_attempts a where a.task_id = lost.id;
            last_attempt := greatest(lost.retry_count, coalesce(last_attempt, 0));
            retry_at := now_at + make_interval(secs => lost.delay);
            may_retry := coalesce(lost.delay is not null and lost.retry_count < lost.max_retries
                and (lost.good_until is null or retry_at < lost.good_until)
                and (not lost.is_workflow_task or horsies_stopped_workflow(lost.id) is distinct from 'CANCELLED'), false);
            new_status := case when not may_retry then 'FAILED' when lost.cancel_requested_at is not null then 'CANCELLED' else 'PENDING' end;
            insert into horsies_task_attempts (task_id, attempt, outcome, will_retry, started_at, finished_at, error_code,
                error_message, failed_reason, worker_id, worker_hostname, worker_pid, worker_process_name)
            values (lost.id, horsies_attempt_number(last_attempt), 'FAILED', new_status = 'PENDING', coalesce(lost.started_at, now_at),
                now_at, 'WORKER_CRASHED', lost.error_message, lost.reason, lost.claimed_by_worker_id, lost.worker_hostname,
                lost.worker_pid, lost.worker_process_name);
            if new_status = 'PENDING' then
                update horsies_tasks t set status = 'PENDING', retry_count = horsies_attempt_number(last_attempt), next_retry_at = retry_at,
                    max_retries = t.max_retries + (last_attempt - t.retry_count),
                    enqueued_at = retry_at, claimed_at = null, claimed_by_worker_id = null, started_at = null,
                    worker_pid = null, worker_hostname = null, worker_process_name = null,
                    finalizing_at = null, finalizing_by_worker_id = null, updated_at = now_at
                where t.id = lost.id;
            else
                update horsies_tasks t set status = new_status, failed_at = now_at,
                    result = case new_status when 'FAILED' then lost.new_result else horsies_cancelled_result(lost.id) end,
                    error_code = case new_status when 'FAILED' then 'WORKER_CRASHED' end,
                    failed_reason = case new_status when 'FAILED' then lost.reason end,
                    finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = now_at
                where t.id = lost.id;
            end if;
            return query select lost.id::text, case new_status when 'PENDING' then 'retried' else lower(new_status) end;
        exception when others then
            if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
                raise;  -- about the server, not about this row
            end if;
            return query select lost.id::text, 'stuck: ' || sqlerrm;
        end;
    end loop;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
end $$;
