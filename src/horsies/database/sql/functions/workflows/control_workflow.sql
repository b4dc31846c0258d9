-- Pause, resume and cancel: a change of status for a workflow and its children at any depth; what it means for tasks and nodes
-- follows from horsies_follow_workflow_status.  Locks: the workflow's tree; horsies_tasks.
-- Caller: workflows/handle.py; pause and cancel by horsies_stop_workflow.  Each answers whether it changed anything; null when there is no such workflow.

-- horsies_workflow_tree: a workflow and all that are below it, from the top down.
create or replace function horsies_workflow_tree(of_workflow text) returns table (workflow_id text, depth integer)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    return query
        with recursive tree as (
            select w.id, w.depth from horsies_workflows w where w.id = of_workflow
            union
            select c.id, c.depth from tree t join horsies_workflows c on c.parent_workflow_id = t.id)
        select t.id::text, t.depth from tree t order by t.depth, t.id;
end $$;

create or replace function horsies_pause_workflow(of_workflow text) returns boolean
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    was_running boolean;
begin
    perform horsies_lock_workflows(array[of_workflow]);
    select w.status = 'RUNNING' into was_running from horsies_workflows w where w.id = of_workflow;
    if was_running then
        update horsies_workflows w set status = 'PAUSED', updated_at = now_at
        where w.id = any (array(select t.workflow_id from horsies_workflow_tree(of_workflow) t)) and w.status || '' = 'RUNNING';
    end if;
    return was_running;
end $$;

-- Nodes that could not go on meanwhile are decided now, and workflows that had nothing left to do end.
create or replace function horsies_resume_workflow(of_workflow text) returns boolean
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    was_paused boolean;
    resumed text[];
begin
    perform horsies_lock_workflows(array[of_workflow]);
    select w.status = 'PAUSED' into was_paused from horsies_workflows w where w.id = of_workflow;
    if was_paused then
        with changed as (
            update horsies_workflows w set status = 'RUNNING', updated_at = now_at
            where w.id = any (array(select t.workflow_id from horsies_workflow_tree(of_workflow) t)) and w.status || '' = 'PAUSED'
            returning w.id)
        select array_agg(c.id::text) into resumed from changed c;
        perform horsies_recover_workflow(i.id) from unnest(resumed) i(id);  -- also what ended unnoticed, or was written by hand
    end if;
    return was_paused;
end $$;

create or replace function horsies_cancel_workflow(of_workflow text) returns boolean
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    was_open boolean;
    tree text[];
begin
    perform horsies_lock_workflows(array[of_workflow]);
    select w.status in ('PENDING', 'RUNNING', 'PAUSED') into was_open from horsies_workflows w where w.id = of_workflow;
    if was_open then
        tree := array(select t.workflow_id from horsies_workflow_tree(of_workflow) t);
        update horsies_workflows w set status = 'CANCELLED', completed_at = now_at, updated_at = now_at
        where w.id = any (tree) and w.status || '' in ('PENDING', 'RUNNING', 'PAUSED');
        -- The node of a cancelled child fails, in a parent that goes on and in one that is cancelled with it.
        perform horsies_advance_nodes(horsies_end_workflows(tree));
    end if;
    return was_open;
end $$;

-- horsies_has_unmarked_runs: whether a worker holds tasks of this tree of which nobody has said yet that they have begun.
create or replace function horsies_has_unmarked_runs(of_workflow text) returns boolean
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    return exists (
        select from horsies_workflow_tree(of_workflow) w
        join horsies_workflow_tasks n on n.workflow_id = w.workflow_id
        join horsies_tasks t on t.id = n.task_id
        where n.status || '' = 'ENQUEUED' and t.status || '' = 'RUNNING');
end $$;

-- horsies_stop_workflow: pauses a workflow, or cancels it for good, commits, and answers when none of its tasks can begin any more.
-- Caller: workflows/handle.py, workflows/steering.py.
-- A task is RUNNING before its turn has come in its worker. The workers are told; they give back what has not begun and mark the
-- nodes of what has (worker/stopped_nodes.py). A worker that does not do so within half a second is not waited for.
create or replace procedure horsies_stop_workflow(of_workflow text, is_for_good boolean, inout is_changed boolean)
language plpgsql
as $$
begin
    is_changed := case when is_for_good then horsies_cancel_workflow(of_workflow) else horsies_pause_workflow(of_workflow) end;
    commit;
    begin
        for look in 1..100 loop  -- also when nothing has changed: the answer of an earlier call may be lost
            exit when not horsies_has_unmarked_runs(of_workflow);
            perform pg_sleep(0.005);
        end loop;
    exception when others then  -- what is committed must not be answered with an error
        null;
    end;
end $$;

-- horsies_decide_workflows: looks at all that may go on in workflows: nodes whose join is decided, waits that are over, places for
-- further nodes of a bounded workflow, workflows whose nodes have all ended, parents' nodes whose child has ended.
-- Caller: horsies_reset_workflow, horsies_recover_workflow, under the lock of the workflows.
create or replace function horsies_decide_workflows(workflow_ids text[]) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
begin
    perform horsies_advance_nodes(
        horsies_decide_nodes(array(
            select n.id::text from unnest(workflow_ids) i(id) join horsies_workflow_tasks n on n.workflow_id = i.id
            where n.status || '' = 'PENDING'))
        || horsies_end_waits(array(
            select n.id::text from unnest(workflow_ids) i(id) join horsies_workflow_tasks n on n.workflow_id = i.id
            where n.status || '' = 'RUNNING' and n.kind in ('sleep', 'event')))
        || horsies_fill_workflows(workflow_ids)
        || horsies_end_workflows(workflow_ids));
end $$;
