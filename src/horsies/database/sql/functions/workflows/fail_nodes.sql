-- horsies_fail_nodes: READY -> FAILED for sub-workflow nodes whose child could not be built, each with its error as stored result.
-- Caller: worker/subworkflow_service.py.  Locks: the tree of the nodes' workflows.
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
            started_at = coalesce(n.started_at, now_at), completed_at = now_at, wait_until = null
        from unnest(node_ids, results) i(id, result) where n.id = i.id and n.status || '' = 'READY'
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into failed from changed c;
    perform horsies_advance_ended(failed);
    return cardinality(failed);
end $$;
