-- horsies_reads_open_node: whether a node reads the result of one that has not ended: one in workflow_ctx_from, or the list of a
-- fan-out. A join of 'any' or 'quorum' need not have waited for it; the node does.
-- Caller: horsies_decide_nodes.
create or replace function horsies_reads_open_node(of_node text) returns boolean
language plpgsql stable
set search_path from current
as $$
begin
    return exists (
        select from horsies_workflow_tasks n
        join horsies_workflow_tasks d on d.workflow_id = n.workflow_id and d.task_index = any (n.dependencies)
        where n.id = of_node and (d.node_id = any (n.workflow_ctx_from) or d.task_index = (n.settings ->> 'each_index')::integer)
          and d.status not in ('COMPLETED', 'FAILED', 'SKIPPED'));
end $$;
