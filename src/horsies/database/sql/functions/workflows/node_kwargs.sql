-- horsies_node_kwargs: the keyword arguments of a node's task: the static ones, the results it reads, its context and metadata.
-- Results travel as texts inside the JSON: one that cannot be read costs its reader nothing else (docs/contract/tasks.md, 11.5).
create or replace function horsies_node_kwargs(of_node text) returns text
language plpgsql stable
set search_path from current
as $$
declare
    node record;
    place json;
    members text;
begin
    select n.* into node from horsies_workflow_tasks n where n.id = of_node;
    members := nullif(substr(node.task_kwargs, 2, length(node.task_kwargs) - 2), '');
    if node.args_from is not null then
        members := concat_ws(',', members, (
            select string_agg(to_json(a.key)::text || ':{"__horsies_taskresult__":true,"data":'
                || to_json(horsies_node_result(d.result, d.status, d.node_id, d.task_index))::text || '}', ',')
            from jsonb_each_text(node.args_from) a
            join horsies_workflow_tasks d on d.workflow_id = node.workflow_id and d.task_index = a.value::integer
            where d.status in ('COMPLETED', 'FAILED', 'SKIPPED')));
    end if;
    if node.kind = 'sub_workflow' then
        return '{' || coalesce(members, '') || '}';
    end if;
    if node.workflow_ctx_from is not null then
        members := concat_ws(',', members, (
            select '"__horsies_workflow_ctx__":' || json_build_object(
                'workflow_id', node.workflow_id, 'task_index', node.task_index, 'task_name', node.task_name,
                'results_by_id', coalesce(json_object_agg(d.node_id,
                    horsies_node_result(d.result, d.status, d.node_id, d.task_index)) filter (where d.node_id is not null), '{}'),
                'summaries_by_id', coalesce(json_object_agg(d.node_id, d.sub_workflow_summary) filter (
                    where d.node_id is not null and d.sub_workflow_summary is not null), '{}'))
            from horsies_workflow_tasks d
            where d.workflow_id = node.workflow_id and d.task_index = any (node.dependencies)
              and d.node_id = any (node.workflow_ctx_from)));
    end if;
    if node.workflow_ctx_from is null then
        members := concat_ws(',', members, '"__horsies_workflow_ctx__":null');
    end if;
    place := json_build_object('workflow_id', node.workflow_id, 'task_index', node.task_index, 'task_name', node.task_name);
    return '{' || concat_ws(',', members, '"__horsies_workflow_meta__":' || place) || '}';
end $$;
