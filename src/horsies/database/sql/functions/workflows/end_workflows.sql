-- horsies_end_workflows: RUNNING -> COMPLETED or FAILED for workflows whose nodes have all ended (docs/contract/workflows.md §6.2).
-- Returns the nodes in parents that have ended with their child.
-- Caller: horsies_advance_nodes, horsies_recover_workflows.
create or replace function horsies_end_workflows(workflow_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    ended text[];
begin
    if workflow_ids = '{}' then
        return '{}';
    end if;
    update horsies_workflows w set
        status = case when j.error is null then 'COMPLETED' else 'FAILED' end,
        result = case when j.error is null then horsies_workflow_result(w.id) end,
        error = j.error, completed_at = now_at, updated_at = now_at, open_nodes = 0
    from (
        select c.id, horsies_workflow_error(c.id) as error
        from unnest(workflow_ids) i(id) join horsies_workflows c on c.id = i.id
        where c.status || '' = 'RUNNING' and not exists (
            select from horsies_workflow_tasks n
            where n.workflow_id = c.id and n.status not in ('COMPLETED', 'FAILED', 'SKIPPED'))
        order by c.id) j
    where w.id = j.id;

    with children as (
        select w.id, w.status, w.result, w.error, w.parent_workflow_id, w.parent_task_index, horsies_workflow_summary(w.id) as summary
        from unnest(workflow_ids) i(id) join horsies_workflows w on w.id = i.id
        where w.parent_workflow_id is not null and w.status || '' in ('COMPLETED', 'FAILED', 'CANCELLED')
    ), changed as (
        update horsies_workflow_tasks n set
            status = case c.status when 'COMPLETED' then 'COMPLETED' else 'FAILED' end,
            result = case c.status when 'COMPLETED' then c.result else horsies_error_result(horsies_subworkflow_error(c.id, c.status, c.summary)) end,
            error = case when c.status <> 'COMPLETED' then horsies_subworkflow_error(c.id, c.status, c.summary)::text end,
            sub_workflow_summary = c.summary, completed_at = now_at
        from children c
        where n.workflow_id = c.parent_workflow_id and n.task_index = c.parent_task_index and n.status || '' = 'RUNNING'
        returning n.id)
    select coalesce(array_agg(c.id::text), '{}') into ended from changed c;
    return ended;
end $$;
