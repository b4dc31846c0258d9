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
    affected text[];
    finished text[];
    to_fill text[];
begin
    while ended <> '{}' loop
        affected := horsies_count_dependents(ended);
        select c.finished, c.to_fill into finished, to_fill from horsies_count_ended_nodes(ended) c;
        ended := horsies_decide_nodes(affected) || horsies_fill_workflows(to_fill) || horsies_end_workflows(finished);
    end loop;
end $$;

-- horsies_count_dependents: tells the nodes behind these, which have just ended, that they have; returns those that still wait.
-- Caller: horsies_advance_nodes.
create or replace function horsies_count_dependents(ended_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_material = off
as $$
declare
    waiting text[];
begin
    with counts as (
        select n.workflow_id, d.task_index, count(*) as ended_count, count(*) filter (where n.status = 'COMPLETED') as completed_count
        from horsies_workflow_tasks n cross join unnest(n.dependents) d(task_index)
        where n.id = any (ended_ids)
        group by n.workflow_id, d.task_index offset 0
    ), changed as (
        update horsies_workflow_tasks t set
            open_dependencies = t.open_dependencies - c.ended_count,
            completed_dependencies = t.completed_dependencies + c.completed_count
        from counts c
        -- An array of one, so that these rows lead the join (decision 0003).
        where t.workflow_id = any (array[c.workflow_id]) and t.task_index = c.task_index
        returning t.id, t.status)
    select coalesce(array_agg(c.id::text) filter (where c.status = 'PENDING'), '{}') into waiting from changed c;
    return waiting;
end $$;
