-- horsies_fill_workflows: enqueues the next nodes of bounded workflows, in the order of their index, up to max_in_flight.
-- Returns nodes that have ended at once.
-- Caller: horsies_advance_nodes, horsies_fan_out, horsies_decide_workflows.
create or replace function horsies_fill_workflows(workflow_ids text[]) returns text[]
language plpgsql
set search_path from current
as $$
declare
    bounded record;
    room integer;
    chosen text[] := '{}';
begin
    for bounded in
        select w.id, w.max_in_flight, w.open_nodes, w.next_index,
            (select max(n.task_index) + 1 from horsies_workflow_tasks n where n.workflow_id = w.id) as total
        from unnest(workflow_ids) i(id) join horsies_workflows w on w.id = i.id
        where w.status = 'RUNNING' and w.max_in_flight is not null
    loop
        room := least(bounded.max_in_flight - (bounded.next_index - (bounded.total - bounded.open_nodes)), bounded.total - bounded.next_index);
        continue when room <= 0;
        chosen := chosen || array(
            select n.id::text from horsies_workflow_tasks n
            where n.workflow_id = bounded.id and n.task_index >= bounded.next_index and n.task_index < bounded.next_index + room
              and n.status = 'READY'
            order by n.task_index);
        update horsies_workflows w set next_index = bounded.next_index + room where w.id = bounded.id;
    end loop;
    return horsies_ready_nodes(chosen);
end $$;
