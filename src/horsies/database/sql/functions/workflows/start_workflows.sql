-- horsies_start_workflows: stores workflows with their nodes and starts what has nothing to wait for, one receipt per workflow.
-- Caller: workflows/prepared_start.py, also in the user's own transaction; worker/subworkflow_service.py for a child.
-- The members are the fields of NewWorkflow and NewNode in workflows/rows.py. A child names the READY node it belongs to.
-- 'created'; 'exists' (same id and name); 'mismatch' (same id, other name); 'refused' (the node no longer waits for a child).
-- Locks: of a child, the tree of its parent.
create or replace function horsies_start_workflows(workflows jsonb, nodes jsonb) returns table (workflow_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    created text[];
    child record;
begin
    perform horsies_lock_workflows(array(
        select n.workflow_id::text from jsonb_to_recordset(workflows) i(parent_node_id text)
        join horsies_workflow_tasks n on n.id = i.parent_node_id));
    with wanted as (
        select i.*, p.workflow_id as parent_id, p.task_index as parent_index, pw.depth as parent_depth,
            coalesce(pw.root_workflow_id, pw.id) as root_id
        from jsonb_to_recordset(workflows) i(id text, name text, on_error text, output_task_index integer, success_policy jsonb,
            definition_key text, sent_at timestamptz, node_count integer, parent_node_id text)
        left join horsies_workflow_tasks p on p.id = i.parent_node_id and p.status || '' = 'READY'
        left join horsies_workflows pw on pw.id = p.workflow_id
        where i.parent_node_id is null or pw.status || '' = 'RUNNING'
    ), inserted as (
        insert into horsies_workflows (id, name, status, on_error, output_task_index, success_policy, definition_key,
            parent_workflow_id, parent_task_index, depth, root_workflow_id, sent_at, created_at, started_at, updated_at, open_nodes)
        select i.id, i.name, 'RUNNING', i.on_error, i.output_task_index, i.success_policy, i.definition_key,
            i.parent_id, i.parent_index, coalesce(i.parent_depth + 1, 0), coalesce(i.root_id, i.id), i.sent_at, now_at, now_at, now_at, i.node_count
        from wanted i
        on conflict do nothing
        returning id)
    select coalesce(array_agg(inserted.id::text), '{}') into created from inserted;

    insert into horsies_workflow_tasks (id, workflow_id, task_index, node_id, task_name, task_args, task_kwargs, queue_name, priority,
        dependencies, dependents, open_dependencies, args_from, workflow_ctx_from, allow_failed_deps, join_type, min_success,
        task_options, good_until, max_retries, kind, settings, event_name, event_key, is_subworkflow, sub_workflow_name,
        sub_definition_key, created_at)
    select i.id, i.workflow_id, i.task_index, i.node_id, i.task_name, '[]', i.task_kwargs, i.queue_name, i.priority,
        i.dependencies, i.dependents, cardinality(i.dependencies), i.args_from, i.workflow_ctx_from, i.allow_failed_deps, i.join_type,
        i.min_success, i.task_options, i.good_until, i.max_retries, i.kind, i.settings, i.settings ->> 'event', i.settings ->> 'key',
        i.kind = 'sub_workflow', case when i.kind = 'sub_workflow' then i.task_name end, i.sub_definition_key, now_at
    from jsonb_to_recordset(nodes) i(id text, workflow_id text, task_index integer, node_id text, task_name text, task_kwargs text,
        queue_name text, priority integer, dependencies integer[], dependents integer[], args_from jsonb, workflow_ctx_from text[],
        allow_failed_deps boolean, join_type text, min_success integer, task_options text, good_until timestamptz,
        max_retries integer, kind text, settings jsonb, sub_definition_key text)
    where i.workflow_id = any (created);
    for child in
        select i.id, i.parent_node_id from jsonb_to_recordset(workflows) i(id text, parent_node_id text) where i.parent_node_id is not null
    loop
        update horsies_workflow_tasks n set status = 'RUNNING', sub_workflow_id = child.id, started_at = now_at, wait_until = null
        where n.id = child.parent_node_id and n.status || '' = 'READY' and exists (  -- also one that an earlier start has stored
            select from horsies_workflows w
            where w.id = child.id and w.parent_workflow_id = n.workflow_id and w.parent_task_index = n.task_index);
    end loop;
    perform horsies_advance_nodes(horsies_decide_nodes(array(
        select n.id::text from unnest(created) i(id) join horsies_workflow_tasks n on n.workflow_id = i.id
        where n.dependencies = '{}')));

    return query
        select i.id, case when i.id = any (created) then 'created' when w.name = i.name then 'exists'
            when w.id is not null then 'mismatch' else 'refused' end
        from rows from (jsonb_to_recordset(workflows) as (id text, name text)) with ordinality i(id, name, position)
        left join horsies_workflows w on w.id = i.id
        order by i.position;
end $$;
