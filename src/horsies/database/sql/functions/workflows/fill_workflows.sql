-- horsies_fill_workflows: enqueues the next nodes of bounded workflows, in the order of their index, up to max_in_flight.
-- Returns nodes that have ended at once.
-- Caller: horsies_advance_nodes, horsies_fan_out, horsies_decide_workflows.
create or replace function horsies_fill_workflows(workflow_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_bitmapscan = off
set enable_sort = off
as $$
declare
    bounded record;
    next_nodes text[];
    last_index integer;
    chosen text[] := '{}';
begin
    for bounded in
        select w.id, w.max_in_flight - w.in_flight as room, w.next_index
        from unnest(workflow_ids) i(id) join horsies_workflows w on w.id = i.id
        where w.status || '' = 'RUNNING' and w.max_in_flight > w.in_flight
    loop
        select coalesce(array_agg(r.id::text order by r.task_index), '{}'), max(r.task_index) into next_nodes, last_index
        from (
            select n.id, n.task_index from horsies_workflow_tasks n
            where n.workflow_id = bounded.id and n.task_index >= bounded.next_index and n.status = 'READY'
            order by n.task_index limit bounded.room) r;
        continue when next_nodes = '{}';
        chosen := chosen || next_nodes;
        update horsies_workflows w set next_index = last_index + 1, in_flight = w.in_flight + cardinality(next_nodes) where w.id = bounded.id;
    end loop;
    return horsies_ready_nodes(chosen);
end $$;
