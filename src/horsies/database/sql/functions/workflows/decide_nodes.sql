-- horsies_decide_nodes: PENDING nodes of RUNNING workflows start or are skipped, where their join says so; returns those that
-- have ended by it: the skipped ones, and fan-outs over nothing.
-- Caller: horsies_advance_nodes, horsies_start_workflows, horsies_decide_workflows.
create or replace function horsies_decide_nodes(node_ids text[]) returns text[]
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    to_run text[];
    to_skip text[];
begin
    if node_ids = '{}' then
        return '{}';
    end if;
    select coalesce(array_agg(j.id order by j.task_index) filter (where j.verdict = 'run'), '{}'),
        coalesce(array_agg(j.id order by j.task_index) filter (where j.verdict = 'skip'), '{}')
    into to_run, to_skip
    from (
        select n.id::text, n.task_index,
            case when v.verdict = 'run' and n.open_dependencies > 0 and (n.workflow_ctx_from is not null or n.kind = 'each')
                      and horsies_reads_open_node(n.id) then 'wait' else v.verdict end as verdict
        from unnest(node_ids) i(id)
        join horsies_workflow_tasks n on n.id = i.id
        join horsies_workflows w on w.id = n.workflow_id
        cross join lateral (select horsies_join_verdict(n.join_type, n.allow_failed_deps, n.min_success,
            cardinality(n.dependencies), n.open_dependencies, n.completed_dependencies) as verdict) v
        where n.status || '' = 'PENDING' and w.status || '' = 'RUNNING') j;  -- found by id: an index of states would find all workflows
    update horsies_workflow_tasks n set status = 'SKIPPED' from unnest(to_skip) i(id) where n.id = i.id;
    return to_skip || horsies_ready_nodes(to_run);
end $$;
