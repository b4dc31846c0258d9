-- horsies_retry_workflow: FAILED -> RUNNING. FAILED nodes run again, and what was SKIPPED behind them is decided anew; results of
-- COMPLETED nodes are kept. With a node given, that node and all behind it run again, whatever they were. Children that failed
-- are retried in their turn; cancelled ones are made anew.
-- Caller: workflows/handle.py.  Locks: the workflow's tree; horsies_tasks.
-- 'retried'; 'refused' (it has not ended, is the child of another, or a cancelled child still has a task that runs, which would be
-- started beside itself); 'no_node'; null without such a workflow.
create or replace function horsies_retry_workflow(of_workflow text, from_node text) returns text
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    workflow record;
    from_index integer;
begin
    perform horsies_lock_workflows(array[of_workflow]);
    select w.id, w.status, w.parent_workflow_id into workflow from horsies_workflows w where w.id = of_workflow;
    if workflow.id is null then
        return null;
    end if;
    if workflow.parent_workflow_id is not null or not (workflow.status = 'FAILED' or (from_node is not null and workflow.status = 'COMPLETED')) then
        return 'refused';
    end if;
    select n.task_index into from_index from horsies_workflow_tasks n where n.workflow_id = of_workflow and n.node_id = from_node;
    if from_node is not null and from_index is null then
        return 'no_node';
    end if;
    if exists (
        select from horsies_workflow_tree(of_workflow) w join horsies_workflow_tasks n on n.workflow_id = w.workflow_id
        join horsies_tasks t on t.id = n.task_id
        where n.status || '' in ('ENQUEUED', 'RUNNING') and t.status || '' in ('PENDING', 'CLAIMED', 'RUNNING'))
    then
        return 'refused';
    end if;
    perform horsies_reset_workflow(of_workflow, from_index);
    return 'retried';
end $$;

-- horsies_reset_workflow: one workflow of horsies_retry_workflow, and the failed children in it.
create or replace function horsies_reset_workflow(of_workflow text, from_index integer) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    again integer[];
    children text[];
begin
    if from_index is null then
        again := array(select n.task_index from horsies_workflow_tasks n where n.workflow_id = of_workflow and n.status in ('FAILED', 'SKIPPED'));
        children := array(select n.sub_workflow_id::text from horsies_workflow_tasks n
            where n.workflow_id = of_workflow and n.status = 'FAILED' and n.sub_workflow_id is not null
              and (select w.status from horsies_workflows w where w.id = n.sub_workflow_id) = 'FAILED');
    else
        again := array(
            with recursive behind as (
                select from_index as task_index
                union
                select d.task_index from behind b
                join horsies_workflow_tasks n on n.workflow_id = of_workflow and n.task_index = b.task_index
                cross join unnest(n.dependents) d(task_index))
            select b.task_index from behind b);
        children := '{}';
    end if;
    -- The others' children are made anew; a cancelled one never runs again.
    delete from horsies_workflows w where w.id = any (array(
        select n.sub_workflow_id from horsies_workflow_tasks n
        where n.workflow_id = of_workflow and n.task_index = any (again) and not n.sub_workflow_id = any (children)));
    update horsies_workflows w set status = 'RUNNING', result = null, error = null, completed_at = null, updated_at = now_at
    where w.id = of_workflow;
    update horsies_workflow_tasks n set
        status = case when n.sub_workflow_id = any (children) then 'RUNNING'
                      when (select w.max_in_flight from horsies_workflows w where w.id = of_workflow) is not null then 'READY'
                      else 'PENDING' end,
        task_id = null, result = null, error = null, completed_at = null, wait_until = null, sub_workflow_summary = null,
        started_at = case when n.sub_workflow_id = any (children) then n.started_at end
    where n.workflow_id = of_workflow and n.task_index = any (again);
    perform horsies_recount_workflow(of_workflow);
    for i in 1..cardinality(children) loop
        perform horsies_reset_workflow(children[i], null);
    end loop;
    perform horsies_decide_workflows(array[of_workflow]);
end $$;
