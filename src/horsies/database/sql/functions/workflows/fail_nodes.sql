-- horsies_fail_nodes: READY -> FAILED for sub-workflow nodes whose child could not be built, each with its error as stored result.
-- Caller: worker/workflow_service.py.  Locks: the tree of the nodes' workflows.
create or replace function horsies_fail_nodes(node_ids text[], results text[]) returns integer
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    failed text[];
begin
    perform horsies_lock_workflows(array(select n.workflow_id::text from horsies_workflow_tasks n where n.id = any (node_ids)));
    with changed as (
        update horsies_workflow_tasks n set status = 'FAILED', result = i.result, error = horsies_error_of(i.result),
            started_at = coalesce(n.started_at, now_at), completed_at = now_at
        from unnest(node_ids, results) i(id, result) where n.id = i.id and n.status || '' = 'READY'
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into failed from changed c;
    perform horsies_advance_ended(failed);
    return cardinality(failed);
end $$;

-- horsies_ready_subworkflows_v2: sub-workflow nodes that wait for a worker that builds their child, with what it needs.
-- Caller: worker/workflow_service.py. Reads only: the start of the child looks again under the lock.
create or replace function horsies_ready_subworkflows_v2(batch_limit integer) returns table (
    node_id text, workflow_id text, definition_key text, kwargs text, task_options text)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    return query
        select n.id::text, n.workflow_id::text, n.sub_definition_key::text, horsies_node_kwargs(n.id), n.task_options
        from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
        where n.status = 'READY' and n.kind = 'sub_workflow' and w.status || '' = 'RUNNING'
        order by n.id limit batch_limit;
end $$;

-- horsies_ready_subworkflows: the same for workers of the release before.
create or replace function horsies_ready_subworkflows(batch_limit integer) returns table (
    node_id text, workflow_id text, definition_key text, kwargs text)
language sql stable
set search_path from current
as $$
    select r.node_id, r.workflow_id, r.definition_key, r.kwargs from horsies_ready_subworkflows_v2(batch_limit) r;
$$;
