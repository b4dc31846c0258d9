-- horsies_start_tasks: CLAIMED -> RUNNING (T4), or CLAIMED -> EXPIRED (T11), for claims waiting in a worker's buffer.
-- Caller: worker/buffer.py.  Locks: horsies_tasks, by id.
-- 'started'; 'expired'; 'paused' or 'cancelled' (its workflow stands); 'claim_lost'. Anything but 'started': user code must not run.
create or replace function horsies_start_tasks(
    owner_id text, hostname text, task_ids text[], claims timestamptz[], attempts integer[], pids integer[]
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
begin
    return query
        with held as (
            -- No status in this WHERE, and a range of the key: these rows must lead the join (decision 0003).
            select t.id, i.position, i.pid,
                case when t.status <> 'CLAIMED' or t.claimed_by_worker_id is distinct from owner_id
                          or t.claimed_at is distinct from i.claim or horsies_attempt_number(t.retry_count) <> i.attempt then 'claim_lost'
                     when t.good_until <= now_at then 'expired'
                     when t.is_workflow_task and horsies_stopped_workflow(t.id) is not null
                         then lower(horsies_stopped_workflow(t.id))
                     when t.claim_expires_at <= now_at then 'claim_lost'
                     else 'started' end as verdict
            from unnest(task_ids, claims, attempts, pids) with ordinality i(id, claim, attempt, pid, position)
            join horsies_tasks t on t.id between i.id and i.id
            order by i.id collate "C" for update of t
        ), started as (
            update horsies_tasks t set status = 'RUNNING', claimed = false, claim_expires_at = null,
                started_at = now_at, worker_pid = h.pid, worker_hostname = hostname,
                worker_process_name = 'worker-' || h.pid, updated_at = now_at
            from held h where t.id between h.id and h.id and h.verdict = 'started'
        ), expired as (
            update horsies_tasks t set status = 'EXPIRED', claimed = false, claim_expires_at = null,
                failed_at = now_at, error_code = 'TASK_EXPIRED', updated_at = now_at,
                result = horsies_error_result('TASK_EXPIRED', 'The deadline good_until passed before the task started',
                    json_build_object('task_id', t.id, 'worker_id', owner_id))
            from held h where t.id between h.id and h.id and h.verdict = 'expired'
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select max(a.id), coalesce(max(a.verdict), 'claim_lost')
        from (select i.id, i.position, null as verdict from unnest(task_ids) with ordinality i(id, position)
              union all
              select h.id, h.position, h.verdict from held h) a
        group by a.position order by a.position;
end $$;
