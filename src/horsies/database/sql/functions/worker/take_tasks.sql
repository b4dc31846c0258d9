-- horsies_take_tasks: the write of a claim pass, for rows it has locked: RUNNING within the lane's free slots, else CLAIMED.
-- Caller: horsies_claim_tasks only.  Lane 1 runs in children, one pid per start in child_pids; other lanes in the worker.
create or replace function horsies_take_tasks(
    owner_id text, hostname text, own_pid integer, lease interval, now_at timestamptz,
    picked_ids text[], picked_lanes integer[], lane_starts integer[], child_pids integer[]
) returns table (
    id text, task_name text, queue_name text, priority integer, args text, kwargs text, attempt integer,
    claim text, enqueued_at timestamptz, task_options text, is_workflow_task boolean, lane integer, worker_pid integer
)
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_sort = on  -- off in the caller, for its own walk
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    claim_text text := horsies_claim_text(now_at);
begin
    if picked_ids = '{}' then
        return;
    end if;
    return query
        with placed as (
            select p.id, p.lane, p.position, row_number() over (partition by p.lane order by p.position) as place
            from unnest(picked_ids, picked_lanes) with ordinality p(id, lane, position)
        ), wanted as (
            select p.id, p.lane, p.position,
                case when p.place > lane_starts[p.lane] then null
                     when p.lane = 1 then coalesce(child_pids[p.place], own_pid) else own_pid end as pid
            from placed p order by p.position
        ), taken as (
            update horsies_tasks t set
                status = case when w.pid is null then 'CLAIMED' else 'RUNNING' end,
                claimed = w.pid is null,
                claimed_at = now_at,
                claimed_by_worker_id = owner_id,
                claim_expires_at = case when w.pid is null then now_at + lease end,
                started_at = case when w.pid is not null then now_at end,
                worker_pid = w.pid,
                worker_hostname = case when w.pid is not null then hostname end,
                worker_process_name = case when w.pid is not null then 'worker-' || w.pid end,
                updated_at = now_at
            from wanted w
            -- Also here: a deadline may pass while the pass waits for the claim lock or counts.
            where t.id = w.id and (t.good_until is null or t.good_until > now_at)
            returning t.id, t.task_name, t.queue_name, t.priority, t.args, t.kwargs, t.retry_count, t.enqueued_at,
                t.task_options, t.is_workflow_task, w.lane, w.pid, w.position)
        select k.id::text, k.task_name::text, k.queue_name::text, k.priority, k.args, k.kwargs, k.retry_count + 1,
            claim_text, k.enqueued_at, k.task_options, k.is_workflow_task, k.lane, k.pid
        from taken k order by k.position;
end $$;
