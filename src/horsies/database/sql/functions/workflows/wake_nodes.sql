-- horsies_wake_nodes: ends the waits of nodes: a sleep whose time has come, an event that has arrived, or one that is overdue.
-- Returns how many, the seconds until the next wait is over by time, and whether sub-workflows wait to be built.
-- Caller: worker/workflow_service.py, woken by notifications and at the time it was told.  Locks: the trees of the workflows.
create or replace function horsies_wake_nodes(batch_limit integer) returns table (
    woken integer, next_after double precision, has_ready boolean)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    due text[];
    told text[];
    ended text[];
begin
    due := array(
        select n.id::text from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
        where n.wait_until <= now_at and n.status = 'RUNNING' and w.status || '' = 'RUNNING'
        order by n.wait_until limit batch_limit);
    told := array(
        select n.id::text from horsies_events e
        join horsies_workflow_tasks n on n.event_name = e.name and n.event_key = e.key and n.status = 'RUNNING'
        join horsies_workflows w on w.id = n.workflow_id and w.status || '' = 'RUNNING'
        where e.is_new limit batch_limit);
    due := array(select d.id from unnest(due || told) d(id) group by d.id);
    perform horsies_lock_workflows(array(select n.workflow_id::text from horsies_workflow_tasks n where n.id = any (due)));
    ended := horsies_end_waits(due);
    -- An event stays new for a while: a node that began to wait in a transaction still under way cannot be seen yet.
    -- One that a user's transaction is sending again is left: nobody waits for that transaction.
    if cardinality(told) < batch_limit then
        update horsies_events e set is_new = false where (e.name, e.key) in (
            select o.name, o.key from horsies_events o where o.is_new and o.sent_at < now_at - interval '5 seconds'
            order by o.name, o.key limit batch_limit for update skip locked);
    end if;
    perform horsies_advance_ended(ended);
    return query
        select cardinality(ended), extract(epoch from (
            select n.wait_until from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
            where n.wait_until < 'infinity' and n.status = 'RUNNING' and w.status || '' = 'RUNNING'
            order by n.wait_until limit 1) - now_at)::double precision,
            exists (select from horsies_workflow_tasks n where n.status = 'READY' and n.kind = 'sub_workflow');
end $$;

-- horsies_end_waits: RUNNING -> COMPLETED or FAILED for waiting nodes, where what they wait for has come; returns those.
-- Caller: horsies_wake_nodes, horsies_ready_nodes, horsies_decide_workflows, under the lock of the workflows.
create or replace function horsies_end_waits(node_ids text[]) returns text[]
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    ended text[];
begin
    with changed as (
        update horsies_workflow_tasks n set
            status = case when c.is_overdue then 'FAILED' else 'COMPLETED' end,
            result = c.result, error = horsies_error_of(c.result), completed_at = now_at
        from (
            select n.id, n.kind = 'event' and e.name is null as is_overdue, case
                when n.kind = 'sleep' then '{"__task_result__":true,"ok":null,"err":null}'
                when e.name is not null then '{"__task_result__":true,"ok":' || e.payload || ',"err":null}'
                else horsies_error_result('TASK_EXPIRED', 'The event ' || n.event_name || ' did not arrive in time',
                    json_build_object('event', n.event_name, 'key', n.event_key)) end as result
            from unnest(node_ids) i(id) join horsies_workflow_tasks n on n.id = i.id
            join horsies_workflows w on w.id = n.workflow_id
            left join horsies_events e on n.kind = 'event' and e.name = n.event_name and e.key = n.event_key
            where n.kind in ('sleep', 'event') and n.status || '' = 'RUNNING' and w.status || '' = 'RUNNING'
              and (n.wait_until <= now_at or e.name is not null)) c
        where n.id = c.id
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into ended from changed c;
    return ended;
end $$;
