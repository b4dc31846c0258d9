-- horsies_ready_nodes: starts nodes that may run; one that cannot be started for what its row says fails with that reason, and
-- stops no other. Returns nodes that have ended at once.
-- Caller: horsies_decide_nodes, horsies_fill_workflows.
create or replace function horsies_ready_nodes(node_ids text[]) returns text[]
language plpgsql
set search_path from current
as $$
declare
    reason text;
    result_text text;
    middle integer := cardinality(node_ids) / 2;
begin
    if node_ids = '{}' then
        return node_ids;
    end if;
    begin
        return horsies_ready_together(node_ids);
    exception when others then
        if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
            raise;
        end if;
        reason := sqlerrm;
    end;
    if cardinality(node_ids) > 1 then
        return horsies_ready_nodes(node_ids[:middle]) || horsies_ready_nodes(node_ids[middle + 1:]);
    end if;
    result_text := horsies_error_result('WORKFLOW_ENQUEUE_FAILED', 'The node could not be started: ' || reason, null);
    update horsies_workflow_tasks n set status = 'FAILED', result = result_text, error = horsies_error_of(result_text),
        completed_at = horsies_now()
    where n.id = any (node_ids);
    return node_ids;
end $$;

-- horsies_ready_together: starts nodes that may run: a task is enqueued (ENQUEUED), a sub-workflow waits for a worker that builds it
-- (READY), a sleep and an event wait by themselves (RUNNING), a fan-out becomes a child of its own. Returns nodes that have
-- ended at once.
-- Caller: horsies_ready_nodes.
create or replace function horsies_ready_together(node_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    task_nodes text[];
    fan_outs text[];
    waits text[];
    has_waits boolean;
    ended text[] := '{}';
begin
    if node_ids = '{}' then
        return ended;
    end if;
    with readied as (
        update horsies_workflow_tasks n set
            status = case n.kind when 'task' then 'ENQUEUED' when 'sub_workflow' then 'READY' else 'RUNNING' end,
            task_id = case when n.kind = 'task' then n.id end,
            started_at = case when n.kind not in ('task', 'sub_workflow') then now_at end,
            wait_until = case when n.kind in ('sleep', 'event')
                then coalesce((n.settings ->> 'until')::timestamptz, now_at + make_interval(secs => (n.settings ->> 'seconds')::double precision)) end
        where n.id = any (node_ids)
        returning n.id, n.kind)
    select coalesce(array_agg(r.id::text) filter (where r.kind = 'task'), '{}'),
        coalesce(array_agg(r.id::text) filter (where r.kind = 'each'), '{}'),
        coalesce(array_agg(r.id::text) filter (where r.kind in ('sleep', 'event')), '{}'),
        coalesce(bool_or(r.kind in ('sub_workflow', 'sleep', 'event')), false)
    into task_nodes, fan_outs, waits, has_waits from readied r;

    perform horsies_enqueue_nodes(task_nodes);
    if has_waits and horsies_may_notify() then
        perform pg_notify('horsies_workflow_wake', '');
    end if;
    if waits <> '{}' then
        ended := horsies_end_waits(waits);  -- the time may have passed, the event may have come
    end if;
    for i in 1..cardinality(fan_outs) loop
        ended := ended || horsies_fan_out(fan_outs[i]);
    end loop;
    return ended;
end $$;
