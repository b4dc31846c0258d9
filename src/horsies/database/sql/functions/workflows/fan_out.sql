-- horsies_fan_out: a node with one task per element of a list becomes a child workflow with a node per element, of which at most
-- max_in_flight are enqueued at once. Returns the node when it has ended by this: over an empty list, or over no list.
-- Caller: horsies_ready_nodes.  settings: {"each_index", "each_as", "max_in_flight"}.
create or replace function horsies_fan_out(of_node text) returns text[]
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    node record;
    source record;
    elements json;
    result_text text;
    child_id text := of_node;
    members text;
    element_count integer;
begin
    select n.*, w.depth, w.root_workflow_id, w.sent_at into node
    from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id where n.id = of_node;
    select n.result, n.status, n.node_id, n.task_index into source from horsies_workflow_tasks n
    where n.workflow_id = node.workflow_id and n.task_index = (node.settings ->> 'each_index')::integer;
    elements := horsies_json(horsies_ok_of(source.result));
    if json_typeof(elements) = 'array' then
        element_count := json_array_length(elements);
    else
        elements := null;
    end if;
    if elements is null or element_count = 0 then
        result_text := case when elements is null then horsies_error_result('WORKFLOW_ENQUEUE_FAILED',
                'The node ' || coalesce(source.node_id, source.task_index::text) || ' has no list to run over',
                json_build_object('dependency_index', source.task_index))
            else '{"__task_result__":true,"ok":[],"err":null}' end;
        update horsies_workflow_tasks n set status = case when elements is null then 'FAILED' else 'COMPLETED' end,
            result = result_text, error = horsies_error_of(result_text), completed_at = now_at
        where n.id = of_node;
        return array[of_node];
    end if;

    insert into horsies_workflows (id, name, status, on_error, parent_workflow_id, parent_task_index, depth, root_workflow_id,
        sent_at, created_at, started_at, updated_at, open_nodes, max_in_flight)
    values (child_id, left(node.task_name || '[]', 255), 'RUNNING', 'fail', node.workflow_id, node.task_index, node.depth + 1,
        coalesce(node.root_workflow_id, node.workflow_id), node.sent_at, now_at, now_at, now_at, element_count,
        (node.settings ->> 'max_in_flight')::integer)
    on conflict (id) do nothing;
    -- The element joins the static arguments: what follows is one text for each, closed behind the element.
    members := left(node.task_kwargs, -1) || case when node.task_kwargs = '{}' then '' else ',' end || to_json(node.settings ->> 'each_as')::text || ':';
    insert into horsies_workflow_tasks (id, workflow_id, task_index, node_id, task_name, task_args, task_kwargs, queue_name, priority,
        task_options, status, good_until, max_retries, created_at)
    select horsies_element_id(of_node, e.position::integer), child_id, e.position - 1, left(node.node_id, 100) || '.' || (e.position - 1),
        node.task_name, '[]', members || e.value::text || '}', node.queue_name, node.priority, node.task_options, 'READY',
        node.good_until, node.max_retries, now_at
    from json_array_elements(elements) with ordinality e(value, position)
    on conflict do nothing;
    update horsies_workflow_tasks n set sub_workflow_id = child_id where n.id = of_node;
    return horsies_fill_workflows(array[child_id]);
end $$;
