-- horsies_workflow_error: the TaskError with which an ended workflow fails; null when it succeeds (docs/contract/workflows.md, 6.2).
-- Without a success policy the stored error stays: of the last failure under 'fail', of the first under 'pause'.
create or replace function horsies_workflow_error(of_workflow text) returns text
language plpgsql stable
set search_path from current
as $$
declare
    workflow record;
    is_met boolean;
begin
    select w.name, w.success_policy, w.error into workflow from horsies_workflows w where w.id = of_workflow;
    if workflow.success_policy is null then
        return (select coalesce(workflow.error, n.error, horsies_error_of(n.result), horsies_task_error('WORKFLOW_FAILED', 'A node failed', null)::text)
            from horsies_workflow_tasks n where n.workflow_id = of_workflow and n.status = 'FAILED'
            order by n.completed_at desc nulls last, n.task_index desc limit 1);
    end if;
    select exists (
        select from jsonb_array_elements(workflow.success_policy -> 'cases') c
        where not exists (
            select from jsonb_array_elements_text(c -> 'required_indices') r
            left join horsies_workflow_tasks n on n.workflow_id = of_workflow and n.task_index = r::integer
            where n.status is distinct from 'COMPLETED')) into is_met;
    if is_met then
        return null;
    end if;
    return coalesce((
        select coalesce(n.error, horsies_error_of(n.result)) from jsonb_array_elements(workflow.success_policy -> 'cases') c,
            jsonb_array_elements_text(c -> 'required_indices') r
        join horsies_workflow_tasks n on n.workflow_id = of_workflow and n.task_index = r::integer
        where n.status = 'FAILED' and coalesce(n.error, horsies_error_of(n.result)) is not null order by n.task_index limit 1),
        horsies_task_error('WORKFLOW_SUCCESS_CASE_NOT_MET', 'No success case of workflow ' || workflow.name || ' was met', null)::text);
end $$;

-- horsies_workflow_result: the result of a completed workflow: of its output node; without one, of all nodes that nothing waits for;
-- of a fan-out the list of all results in order.
create or replace function horsies_workflow_result(of_workflow text) returns text
language plpgsql stable
set search_path from current
as $$
declare
    workflow record;
begin
    select w.output_task_index, w.max_in_flight into workflow from horsies_workflows w where w.id = of_workflow;
    if workflow.output_task_index is not null then
        return (select horsies_node_result(n.result, n.status, n.node_id, n.task_index) from horsies_workflow_tasks n
            where n.workflow_id = of_workflow and n.task_index = workflow.output_task_index);
    end if;
    if workflow.max_in_flight is not null then
        return (select '{"__task_result__":true,"ok":[' || string_agg(coalesce(horsies_ok_of(n.result), 'null'), ',' order by n.task_index)
                || '],"err":null}'
            from horsies_workflow_tasks n where n.workflow_id = of_workflow);
    end if;
    return (select '{"__task_result__":true,"ok":{' || string_agg(to_json(coalesce(n.node_id, n.task_index::text))::text || ':'
            || coalesce(n.result, 'null'), ',' order by n.task_index) || '},"err":null}'
        from horsies_workflow_tasks n
        -- By the dependencies: rows that were written by hand need not name their dependents.
        where n.workflow_id = of_workflow and n.task_index not in (
            select i.task_index from horsies_workflow_tasks d cross join unnest(d.dependencies) i(task_index)
            where d.workflow_id = of_workflow and i.task_index is not null));
end $$;

-- horsies_workflow_summary: what the parent of a workflow keeps of it (SubWorkflowSummary).
create or replace function horsies_workflow_summary(of_workflow text) returns text
language plpgsql stable
set search_path from current
as $$
begin
    return (
        select json_build_object('status', w.status, 'output', horsies_json(horsies_ok_of(w.result)),
            'total_tasks', c.total, 'completed_tasks', c.completed, 'failed_tasks', c.failed, 'skipped_tasks', c.skipped,
            'error_summary', horsies_json_text(w.error, 'message'))::text
        from horsies_workflows w, lateral (
            select count(*) as total, count(*) filter (where n.status = 'COMPLETED') as completed,
                count(*) filter (where n.status = 'FAILED') as failed, count(*) filter (where n.status = 'SKIPPED') as skipped
            from horsies_workflow_tasks n where n.workflow_id = w.id) c
        where w.id = of_workflow);
end $$;

-- horsies_subworkflow_error: the error of a node whose child workflow did not complete (SubWorkflowError).
create or replace function horsies_subworkflow_error(child_id text, child_status text, summary text) returns json
language sql immutable parallel safe as $$
    select json_build_object(
        '__task_error__', true,
        'error_code', json_build_object('__builtin_task_code__', 'SUBWORKFLOW_FAILED'),
        'message', 'The sub-workflow ' || child_id || ' is ' || child_status || coalesce(': ' || horsies_json_text(summary, 'error_summary'), ''),
        'data', json_build_object('sub_workflow_id', child_id),
        'sub_workflow_id', child_id,
        'sub_workflow_summary', summary::json)
$$;
