-- horsies_stuck_workflows: RUNNING workflows behind an id in which something should have gone on and did not
-- (docs/contract/workflows.md, 10), and CANCELLED ones in which a run has ended unnoticed; and the last one looked at: at most
-- batch_limit, and fewer if they are large.
-- Caller: horsies_recover_workflows. Reads only.
-- One by one: a join that was planned while the tables were small would cost n * n for n rows.
create or replace function horsies_stuck_workflows(after_id text, batch_limit integer, out stuck text[], out looked_to text)
language plpgsql stable
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    node_limit constant integer := 20000;  -- some 100 ms
    workflow record;
    nodes record;
    seen integer := 0;
begin
    stuck := '{}';
    for workflow in
        (select w.id, w.max_in_flight, w.next_index from horsies_workflows w
         where w.status = 'RUNNING' and w.id > after_id order by w.id limit batch_limit)
        union all
        (select w.id, w.max_in_flight, w.next_index from horsies_workflows w
         where w.status = 'CANCELLED' and w.open_nodes > 0 and w.id > after_id order by w.id limit batch_limit)
        order by id limit batch_limit
    loop
        select count(*) as total, count(*) filter (where n.status not in ('COMPLETED', 'FAILED', 'SKIPPED')) as open_count,
            count(*) filter (where case n.status
                when 'PENDING' then t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
                    or horsies_join_verdict(n.join_type, n.allow_failed_deps, n.min_success, cardinality(n.dependencies),
                        n.open_dependencies, n.completed_dependencies) <> 'wait'
                when 'READY' then n.kind = 'task' and (workflow.max_in_flight is null or n.task_index < workflow.next_index)
                    and (t.id is null or t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED'))
                when 'ENQUEUED' then t.id is null or t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
                when 'RUNNING' then case
                    when n.task_id is not null then t.id is null or t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
                    when n.sub_workflow_id is not null then c.status in ('COMPLETED', 'FAILED', 'CANCELLED')
                    when n.kind in ('sleep', 'event') then n.wait_until <= horsies_now() or e.name is not null
                    else true end
                else false end) as stuck_count
        into nodes
        from horsies_workflow_tasks n
        left join horsies_tasks t on t.id = n.task_id and n.status not in ('COMPLETED', 'FAILED', 'SKIPPED')
        left join horsies_workflows c on c.id = n.sub_workflow_id and n.status = 'RUNNING'
        left join horsies_events e on e.name = n.event_name and e.key = n.event_key and n.status = 'RUNNING'
        where n.workflow_id = workflow.id;
        if nodes.open_count = 0 or nodes.stuck_count > 0 then
            stuck := stuck || workflow.id::text;
        end if;
        looked_to := workflow.id;
        seen := seen + nodes.total;
        exit when seen >= node_limit;
    end loop;
end $$;
