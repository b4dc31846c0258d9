-- horsies_recover_workflows: makes up for what should have followed in workflows and did not: counts anew, takes over ends of tasks
-- and children, decides. A second pass changes nothing. Returns how many were stuck, and where the next pass goes on.
-- Caller: recovery/reaper.py.  Locks: the trees of the workflows. One that fails says why and stops no other.
create or replace function horsies_recover_workflows(after_id text, batch_limit integer)
returns table (recovered integer, looked_to text, failure text)
language plpgsql
set search_path from current
as $$
declare
    pass record;
    failures text;
    done integer := 0;
begin
    if not pg_try_advisory_xact_lock(horsies_lock_key('recover workflows')) then
        return;  -- another worker does it
    end if;
    pass := horsies_stuck_workflows(after_id, batch_limit);
    perform horsies_lock_workflows(pass.stuck);
    for i in 1..cardinality(pass.stuck) loop
        failure := horsies_mend_workflow(pass.stuck[i]);
        done := done + (failure is null)::integer;
        failures := nullif(concat_ws('; ', failures, failure), '');
    end loop;
    return query select done, pass.looked_to::text, failures;
end $$;

-- horsies_mend_workflow: horsies_recover_workflow, contained: a workflow that cannot go on for what its rows say is given up. Null,
-- or what was wrong.
-- Caller: horsies_recover_workflows, horsies_mend_trees, under the lock of the tree.
create or replace function horsies_mend_workflow(of_workflow text) returns text
language plpgsql
set search_path from current
as $$
begin
    perform horsies_recover_workflow(of_workflow);
    return null;
exception when others then
    if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
        raise;  -- about the server, not about this workflow: the caller tries again
    elsif horsies_verdict(sqlstate, sqlerrm) = 'bug' then
        return of_workflow || ': ' || sqlerrm;
    end if;
    return of_workflow || ': ' || concat_ws('; ', sqlerrm, horsies_give_up_workflow(of_workflow, sqlerrm));
end $$;

-- horsies_give_up_workflow: RUNNING -> FAILED for a workflow that cannot go on for what its rows say, with that reason: its waiting
-- nodes are skipped, and its parent learns of it. Null, or why not even that could be done.
-- Caller: horsies_mend_workflow, under the lock of the tree.
create or replace function horsies_give_up_workflow(of_workflow text, reason text) returns text
language plpgsql
set search_path from current
as $$
begin
    update horsies_workflow_tasks n set status = 'SKIPPED'
    where n.workflow_id = of_workflow and n.status in ('PENDING', 'READY');
    update horsies_workflows w set status = 'FAILED', completed_at = horsies_now(), updated_at = horsies_now(), open_nodes = 0,
        error = horsies_task_error('WORKFLOW_ENQUEUE_FAILED', 'The workflow cannot go on: ' || reason, null)::text
    where w.id = of_workflow and w.status = 'RUNNING';
    perform horsies_advance_ended(horsies_end_workflows(array[of_workflow]));
    return null;
exception when others then
    if horsies_verdict(sqlstate, sqlerrm) = 'retry' then
        raise;
    end if;
    return 'it cannot be ended: ' || sqlerrm;
end $$;

-- horsies_recover_workflow: the same for one workflow.  Caller: horsies_recover_workflows, horsies_resume_workflow.
create or replace function horsies_recover_workflow(of_workflow text) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    is_bounded boolean;
    is_cancelled boolean;
begin
    perform horsies_lock_workflows(array[of_workflow]);
    select w.max_in_flight is not null, w.status = 'CANCELLED' into is_bounded, is_cancelled
    from horsies_workflows w where w.id = of_workflow and w.status in ('RUNNING', 'CANCELLED');
    if not found then
        return;
    end if;
    -- Rows written by hand tell their kind by is_subworkflow alone.
    update horsies_workflow_tasks n set kind = 'sub_workflow' where n.workflow_id = of_workflow and n.is_subworkflow and n.kind = 'task';
    if found and horsies_may_notify() then
        perform pg_notify('horsies_workflow_wake', '');
    end if;
    -- A node whose task has vanished never ran to an end that anyone knows: it is enqueued anew, or skipped where nothing may start.
    update horsies_workflow_tasks n set
        status = case when is_cancelled then 'SKIPPED' when is_bounded then 'READY' else 'PENDING' end, task_id = null, started_at = null
    where n.workflow_id = of_workflow and (n.status in ('READY', 'ENQUEUED', 'RUNNING') and n.kind = 'task'
            and not exists (select from horsies_tasks t where t.id = n.task_id)
        or n.status = 'RUNNING' and n.kind in ('sub_workflow', 'each') and n.sub_workflow_id is null);
    perform horsies_recount_workflow(of_workflow);
    perform horsies_advance_nodes(
        horsies_settle_nodes(array(
            select n.task_id::text from horsies_workflow_tasks n
            where n.workflow_id = of_workflow and n.task_id is not null and n.status in ('PENDING', 'READY', 'ENQUEUED', 'RUNNING')), true)
        || horsies_end_workflows(array(
            select n.sub_workflow_id::text from horsies_workflow_tasks n
            where n.workflow_id = of_workflow and n.status = 'RUNNING' and n.sub_workflow_id is not null)));
    perform horsies_decide_workflows(array[of_workflow]);
end $$;

-- horsies_recount_workflow: the counts of a workflow and of its waiting nodes, from the states of its nodes.
-- Caller: horsies_recover_workflow, horsies_retry_workflow, under the lock of the workflow.
create or replace function horsies_recount_workflow(of_workflow text) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    edges record;
begin
    update horsies_workflow_tasks n set open_dependencies = c.open_count, completed_dependencies = c.completed_count
    from (
        select w.id, d.open_count, d.completed_count from horsies_workflow_tasks w
        cross join lateral (
            select count(*) filter (where s.status not in ('COMPLETED', 'FAILED', 'SKIPPED')) as open_count,
                count(*) filter (where s.status = 'COMPLETED') as completed_count
            from unnest(w.dependencies) i(task_index)
            join horsies_workflow_tasks s on s.workflow_id = of_workflow and s.task_index = i.task_index) d
        where w.workflow_id = of_workflow and w.status || '' in ('PENDING', 'READY')
          and (w.open_dependencies, w.completed_dependencies) <> (d.open_count, d.completed_count)) c
    where n.id = c.id;
    -- Edges in the other direction, for rows that were written without them.
    for edges in
        select i.task_index, array_agg(d.task_index order by d.task_index) as dependents
        from horsies_workflow_tasks d cross join unnest(d.dependencies) i(task_index)
        where d.workflow_id = of_workflow group by i.task_index
    loop
        update horsies_workflow_tasks n set dependents = edges.dependents
        where n.workflow_id = of_workflow and n.task_index = edges.task_index and n.dependents <> edges.dependents;
    end loop;
    update horsies_workflows w set open_nodes = c.open_count, in_flight = c.in_flight,
        next_index = case when w.max_in_flight is null then w.next_index else coalesce(c.next_ready, w.next_index) end
    from (
        select count(*) filter (where n.status not in ('COMPLETED', 'FAILED', 'SKIPPED')) as open_count,
            count(*) filter (where n.status in ('ENQUEUED', 'RUNNING')) as in_flight,
            min(n.task_index) filter (where n.status = 'READY') as next_ready
        from horsies_workflow_tasks n where n.workflow_id = of_workflow) c
    where w.id = of_workflow;
end $$;
