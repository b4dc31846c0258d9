-- horsies_advance_nodes: what follows from nodes that have just ended, until nothing follows any more: counts, failure policy,
-- joins and skips, new tasks, ends of workflows, and from the ends of children the same for their parents' nodes.
-- Caller: every function that ends nodes, under the lock of the workflows.
create or replace function horsies_advance_nodes(ended_ids text[]) returns void
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    ended text[] := ended_ids;
    counted record;
    dependent record;
    affected text[];
    finished text[];
    to_fill text[];
begin
    while ended <> '{}' loop
        affected := '{}';
        for counted in
            select n.workflow_id, d.task_index, count(*) as ended_count, count(*) filter (where n.status = 'COMPLETED') as completed_count
            from horsies_workflow_tasks n cross join unnest(n.dependents) d(task_index)
            where n.id = any (ended)
            group by n.workflow_id, d.task_index
        loop
            update horsies_workflow_tasks t set
                open_dependencies = t.open_dependencies - counted.ended_count,
                completed_dependencies = t.completed_dependencies + counted.completed_count
            where t.workflow_id = counted.workflow_id and t.task_index = counted.task_index
            returning t.id, t.status into dependent;
            if dependent.status = 'PENDING' then
                affected := affected || dependent.id::text;
            end if;
        end loop;
        select c.finished, c.to_fill into finished, to_fill from horsies_count_ended_nodes(ended) c;
        ended := horsies_decide_nodes(affected) || horsies_fill_workflows(to_fill) || horsies_end_workflows(finished);
    end loop;
end $$;
