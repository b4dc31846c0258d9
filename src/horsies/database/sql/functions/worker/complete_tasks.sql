-- horsies_complete_tasks: RUNNING -> COMPLETED (T6) for a batch of one worker's claims, each with its attempt row.
-- Caller: worker/completer.py, which sorts by id.  Locks: horsies_tasks, by id.
-- A claim that is no longer held answers 'claim_lost' and changes nothing.
create or replace function horsies_complete_tasks(
    owner_id text, task_ids text[], claims timestamptz[], attempts integer[], results text[]
) returns table (task_id text, outcome text)
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
    ended_count bigint;
begin
    with ended as (
        update horsies_tasks t set status = 'COMPLETED', completed_at = now_at, result = i.result, error_code = null,
            failed_reason = null, finalizing_at = null, finalizing_by_worker_id = null, updated_at = now_at
        from unnest(task_ids, claims, attempts, results) i(id, claim, attempt, result)
        -- By a range of the key, so that these rows lead the join whatever the planner knows of the table; status || '' keeps it from the
        -- in-flight index (decision 0003). Else a plan cached for one row would cost n * n for n.
        where t.id between i.id and i.id and t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id
          and t.claimed_at = i.claim and horsies_attempt_number(t.retry_count) = i.attempt
        returning t.id, i.attempt, t.started_at, t.worker_hostname, t.worker_pid, t.worker_process_name
    )
    insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at,
        worker_id, worker_hostname, worker_pid, worker_process_name)
    select e.id, e.attempt, 'COMPLETED', e.started_at, now_at, owner_id, e.worker_hostname, e.worker_pid, e.worker_process_name
    from ended e;
    get diagnostics ended_count = row_count;
    if ended_count = cardinality(task_ids) then
        return;
    end if;
    -- Rare: some claims were lost. Those that stand as just completed by this call carry this call's time.
    return query
        select i.id, 'claim_lost' from unnest(task_ids, attempts) i(id, attempt)
        where not exists (
            select from horsies_task_attempts a
            where a.task_id = i.id and a.attempt = i.attempt and a.outcome = 'COMPLETED'
              and a.finished_at = now_at and a.worker_id = owner_id);
end $$;
