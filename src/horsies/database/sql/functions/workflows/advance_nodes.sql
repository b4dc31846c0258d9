-- horsies_advance_nodes: what follows from nodes that have just ended, until nothing follows any more: counts, failure policy,
-- joins and skips, new tasks, ends of workflows, and from the ends of children the same for their parents' nodes.
-- Caller: every function that ends nodes, under the lock of the workflows. Each round is a handful of statements, however many
-- nodes and workflows it is about.
create or replace function horsies_advance_nodes(ended_ids text[]) returns void
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    ended text[] := ended_ids;
    affected text[];
    finished text[];
    to_fill text[];
begin
    while ended <> '{}' loop
        with counted as (
            select n.workflow_id, d.task_index, count(*)::integer as ended_count,
                (count(*) filter (where n.status = 'COMPLETED'))::integer as completed_count
            from unnest(ended) i(id) join horsies_workflow_tasks n on n.id = i.id cross join unnest(n.dependents) d(task_index)
            group by n.workflow_id, d.task_index
        ), changed as (
            update horsies_workflow_tasks t set
                open_dependencies = t.open_dependencies - c.ended_count,
                completed_dependencies = t.completed_dependencies + c.completed_count
            from counted c where t.workflow_id = c.workflow_id and t.task_index = c.task_index
            returning t.id, t.status)
        select coalesce(array_agg(c.id::text) filter (where c.status = 'PENDING'), '{}') into affected from changed c;

        select c.finished, c.to_fill into finished, to_fill from horsies_count_ended_nodes(ended) c;
        ended := horsies_decide_nodes(affected) || horsies_fill_workflows(to_fill) || horsies_end_workflows(finished);
    end loop;
end $$;
