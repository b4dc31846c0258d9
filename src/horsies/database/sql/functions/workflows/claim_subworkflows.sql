-- horsies_claim_subworkflows: sub-workflow nodes that wait for a worker that builds their child, for a worker that knows their
-- definitions, with what it needs; kwargs are null where they cannot be read. No other worker gets a node until its lease has
-- passed: wait_until of a READY node. The start of the child looks again under the lock.
-- Caller: worker/subworkflow_service.py.  Locks: horsies_workflow_tasks, skipping locked rows.
create or replace function horsies_claim_subworkflows(definition_keys text[], lease interval, batch_limit integer) returns table (
    node_id text, workflow_id text, definition_key text, kwargs text, task_options text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    claimed text[];
begin
    claimed := array(
        select n.id::text from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
        where n.status = 'READY' and n.kind = 'sub_workflow' and w.status || '' = 'RUNNING'
          and n.sub_definition_key = any (definition_keys) and (n.wait_until is null or n.wait_until <= now_at)
        order by n.id limit batch_limit for update of n skip locked);
    update horsies_workflow_tasks n set wait_until = now_at + lease where n.id = any (claimed);
    return query
        select n.id::text, n.workflow_id::text, n.sub_definition_key::text, horsies_readable_kwargs(n.id), n.task_options
        from horsies_workflow_tasks n where n.id = any (claimed) order by n.id;
end $$;

-- horsies_readable_kwargs: horsies_node_kwargs; null where a row makes it raise.
create or replace function horsies_readable_kwargs(of_node text) returns text
language plpgsql
set search_path from current
as $$
begin
    return horsies_node_kwargs(of_node);
exception when others then
    if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
        raise;
    end if;
    return null;
end $$;

-- horsies_orphan_subworkflows: sub-workflow nodes whose definition neither this worker nor any other that lives knows. A worker of
-- release 0.2 does not say what it knows: while one lives, there are none.
-- Caller: worker/subworkflow_service.py. Reads only.
create or replace function horsies_orphan_subworkflows(own_keys text[], batch_limit integer)
returns table (node_id text, definition_key text)
language plpgsql stable
set search_path from current
set enable_seqscan = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    known text[];
    is_silent boolean;
begin
    select coalesce(array_agg(distinct k.name), '{}'), coalesce(bool_or(w.definition_keys is null), false) into known, is_silent
    from (
        select distinct s.worker_id from horsies_worker_states s where s.snapshot_at >= now_at - interval '1 minute') l
    cross join lateral (
        select (select s.definition_keys from horsies_worker_states s
                where s.worker_id = l.worker_id and s.definition_keys is not null order by s.snapshot_at desc limit 1) as definition_keys) w
    left join lateral unnest(w.definition_keys) k(name) on true;
    if is_silent then
        return;
    end if;
    return query
        select n.id::text, n.sub_definition_key::text
        from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
        where n.status = 'READY' and n.kind = 'sub_workflow' and w.status || '' = 'RUNNING'
          and n.sub_definition_key <> all (own_keys || known)
        order by n.id limit batch_limit;
end $$;

-- horsies_ready_subworkflows: for workers of release 0.2, which build what they get without a lease.
create or replace function horsies_ready_subworkflows(batch_limit integer) returns table (
    node_id text, workflow_id text, definition_key text, kwargs text)
language plpgsql stable
set search_path from current
as $$
begin
    return query select n.id::text, n.workflow_id::text, n.sub_definition_key::text, horsies_node_kwargs(n.id)
    from horsies_workflow_tasks n join horsies_workflows w on w.id = n.workflow_id
    where n.status = 'READY' and n.kind = 'sub_workflow' and w.status || '' = 'RUNNING'
      and (n.wait_until is null or n.wait_until <= horsies_now())
    order by n.id limit batch_limit;
end $$;
