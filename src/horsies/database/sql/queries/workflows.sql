-- Reads of workflows.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: read_workflows
select w.id, w.name, w.status, w.result, w.error, o.kind, o.task_name, o.sub_definition_key, o.event_name
from horsies_workflows w
left join horsies_workflow_tasks o on o.workflow_id = w.id and o.task_index = w.output_task_index
where w.id = any (%(ids)s::text[]);

-- name: read_nodes
select n.node_id, n.task_index, n.task_name,
    case when n.status = 'ENQUEUED' and (t.status = 'RUNNING' or t.retry_count > 0) then 'RUNNING' else n.status end,
    case when %(with_results)s then n.result end,
    coalesce(n.started_at, t.started_at), n.completed_at, n.kind, n.join_type, n.min_success, n.dependencies,
    n.sub_workflow_id, n.sub_workflow_summary, n.sub_definition_key, n.event_name
from horsies_workflow_tasks n
left join horsies_tasks t on t.id = n.task_id and n.status = 'ENQUEUED'
where n.workflow_id = %(workflow_id)s and (%(node_id)s::text is null or n.node_id = %(node_id)s)
order by n.task_index limit 100000;
