-- horsies_take_tasks: the write of a claim, for rows it has locked: RUNNING as far as their lane starts some, else CLAIMED.
-- Caller: horsies_claim_tasks_v2.  Locks: none beyond the rows it was given.
-- A task's place is its number among those of its lane. The starts of a lane run in its children, one pid for each in child_pids;
-- without these in the worker itself. Starts beyond the lane's free_slots are taken ahead: they are numbered from ahead_from on
-- and begin when a permit covers them (decision 0011).
create or replace function horsies_take_tasks(
    owner_id text, hostname text, own_pid integer, lease interval,
    lanes jsonb, task_ids text[], task_lanes integer[], task_places integer[], now_at timestamptz
) returns table (
    id text, queue_name text, priority integer, lane integer, task_name text, args text, kwargs text, attempt integer,
    claim text, enqueued_at text, task_options text, is_workflow_task boolean, worker_pid integer, ahead_number bigint,
    "position" bigint
)
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
#variable_conflict use_column
declare
    claim_text text := horsies_claim_text(now_at);
    starts integer[];
    child_pids jsonb[];
    free_slots integer[];
    ahead_froms bigint[];
begin
    for l in 1..jsonb_array_length(lanes) loop
        free_slots[l] := (lanes -> l - 1 ->> 'free_slots')::integer;
        ahead_froms[l] := (lanes -> l - 1 ->> 'ahead_from')::bigint;
        starts[l] := (lanes -> l - 1 ->> 'starts')::integer;
        if lanes -> l - 1 -> 'child_pids' <> 'null' then
            child_pids[l] := lanes -> l - 1 -> 'child_pids';
        end if;
    end loop;
    return query
        with wanted as (
            select p.id, p.lane, p.position,
                case when p.place > free_slots[p.lane] and p.place <= starts[p.lane]
                     then ahead_froms[p.lane] + p.place - free_slots[p.lane] - 1 end as ahead_number,
                case when p.place <= starts[p.lane]
                     then coalesce((child_pids[p.lane] ->> p.place - 1)::integer, own_pid) end as pid
            from unnest(task_ids, task_lanes, task_places) with ordinality p(id, lane, place, position)
            offset 0)  -- as a step of its own: pid is worked out once, not for each column
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
            ahead_number = w.ahead_number,
            updated_at = now_at
        from wanted w
        -- By a range, so that these rows lead the join whatever the planner knows of the table (decision 0003).
        -- The deadline again: it may have passed while the claim waited for its lock or counted.
        where t.id between w.id and w.id and (t.good_until is null or t.good_until > now_at)
        returning t.id::text, t.queue_name::text, t.priority, w.lane, t.task_name::text, t.args, t.kwargs,
            horsies_attempt_number(t.retry_count), claim_text, horsies_mark_text(t.enqueued_at), t.task_options,
            t.is_workflow_task, w.pid, w.ahead_number, w.position;
end $$;
