-- Reads of workflows.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: read_workflows
select w.id, w.name, w.status, w.result, w.error, o.kind, o.task_name, o.sub_definition_key, o.event_name
from horsies_workflows w
left join horsies_workflow_tasks o on o.workflow_id = w.id and o.task_index = w.output_task_index
where w.id = any (%(ids)s::text[]);

-- name: read_nodes
select n.node_id, n.task_index, n.task_name,
    case when n.status = 'ENQUEUED' and (t.status = 'RUNNING' or t.next_retry_at is not null) then 'RUNNING' else n.status end,
    case when %(with_results)s then n.result end,
    coalesce(n.started_at, t.started_at), n.completed_at, n.kind, n.join_type, n.min_success, n.dependencies,
    n.sub_workflow_id, n.sub_workflow_summary, n.sub_definition_key, n.event_name
from horsies_workflow_tasks n
left join horsies_tasks t on t.id = n.task_id and n.status = 'ENQUEUED'
where n.workflow_id = %(workflow_id)s and (%(node_id)s::text is null or n.node_id = %(node_id)s)
order by n.task_index limit 100000;

-- name: unmarked_stopped_tasks
select t.id
from horsies_tasks t
join horsies_workflow_tasks n on n.task_id = t.id
join horsies_workflows w on w.id = n.workflow_id
where t.status = 'RUNNING' and t.claimed_by_worker_id = %(worker_id)s and t.is_workflow_task
  and n.status = 'ENQUEUED' and w.status in ('PAUSED', 'CANCELLED')
limit 2000;

-- name: list_workflows
-- The newest of those that no other workflow has started; what ended is counted without reading the nodes.
select w.id, w.name, w.status, greatest(coalesce(t.task_index + 1, 0) - w.open_nodes::bigint, 0) as done_count,
    coalesce(t.task_index + 1, 0) as node_count, w.sent_at, w.started_at, w.completed_at, horsies_now() as read_at
from horsies_workflows w
left join lateral (
    select n.task_index::bigint from horsies_workflow_tasks n where n.workflow_id = w.id order by n.task_index desc limit 1) t on true
where w.parent_workflow_id is null
  and (%(statuses)s::text[] is null or w.status = any (%(statuses)s::text[]))
  and (%(name)s::text is null or w.name = %(name)s)
  and (%(before)s::text is null or w.id < %(before)s)
order by w.id desc limit %(limit)s;

-- name: workflows_with_prefix
select w.id, w.parent_workflow_id is null as is_root from horsies_workflows w
where w.id >= %(prefix)s and w.id < %(prefix_end)s
order by w.id limit 1000;

-- name: overview_workflows
select w.id, w.name, w.status, w.on_error, w.parent_workflow_id, w.root_workflow_id, w.max_in_flight, w.sent_at, w.started_at,
    w.completed_at, horsies_now() as read_at,
    coalesce(horsies_json_text(w.error, 'error_code', '__builtin_task_code__'), horsies_json_text(w.error, 'error_code')) as error_code,
    left(horsies_json_text(w.error, 'message'), 2000) as error_message, c.counts
from horsies_workflows w, lateral (
    select coalesce(json_object_agg(s.status, s.node_count), '{}') as counts from (
        select n.status, count(*) as node_count from horsies_workflow_tasks n where n.workflow_id = w.id group by n.status) s) c
where w.id = any (%(ids)s::text[]) order by w.id limit 20000;

-- name: overview_nodes
select n.workflow_id, n.task_index, n.node_id, n.task_name, n.kind,
    case when n.status = 'ENQUEUED' and (t.status = 'RUNNING' or t.next_retry_at is not null) then 'RUNNING' else n.status end as status,
    coalesce(n.started_at, t.started_at) as started_at, n.completed_at, n.dependencies, n.join_type, n.min_success, n.queue_name,
    n.sub_workflow_id, n.wait_until, n.event_name, n.event_key, coalesce(t.retry_count, 0) as retry_count,
    coalesce(horsies_json_text(n.error, 'error_code', '__builtin_task_code__'), horsies_json_text(n.error, 'error_code')) as error_code,
    left(horsies_json_text(n.error, 'message'), 2000) as error_message, n.task_id
from horsies_workflow_tasks n
left join horsies_tasks t on t.id = n.task_id and n.status in ('ENQUEUED', 'RUNNING')
where n.workflow_id = any (%(workflow_ids)s::text[])
order by n.workflow_id, n.task_index limit 20000;

-- name: failures_in_tree
-- What failed by itself in a workflow and below it; a node whose child failed only passes that on.
select n.workflow_id, n.node_id, n.task_index, n.task_name,
    coalesce(horsies_json_text(n.error, 'error_code', '__builtin_task_code__'), horsies_json_text(n.error, 'error_code')) as error_code,
    left(horsies_json_text(n.error, 'message'), 2000) as error_message
from horsies_workflow_tree(%(workflow_id)s) w join horsies_workflow_tasks n on n.workflow_id = w.workflow_id
where n.status = 'FAILED' and not exists (select from horsies_workflows c where c.id = n.sub_workflow_id and c.status = 'FAILED')
order by n.completed_at, n.workflow_id, n.task_index limit %(limit)s;
