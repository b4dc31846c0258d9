-- horsies_totals: tasks and workflows by state, each counted up to a limit along an index, and claims whose lease has run out.
-- Caller: operations/counting.py.  Locks: none; it only reads.
-- Nodes that a paused workflow holds back are not counted. Of ended workflows the latest count, all states together. The indexes are
-- forced: with statistics of an empty table the planner would read all of a large one.
create or replace function horsies_totals(count_limit integer)
returns table (kind text, status text, number bigint)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
as $$
#variable_conflict use_column
begin
    return query
    select 'task'::text as kind, 'PENDING'::text as status, (select count(*) from (
        select from horsies_tasks t where t.status = 'PENDING' and not t.is_held
        order by t.queue_name, t.priority, t.enqueued_at, t.id limit count_limit) p) as number
    union all
    select 'task', f.status::text, count(*) from (
        select t.status from horsies_tasks t where t.status in ('CLAIMED', 'RUNNING') order by t.claimed_at limit 2 * count_limit) f group by f.status
    union all
    select 'task', s.status::text, (select count(*) from (
        select from horsies_tasks t where t.status = s.status and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
        order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) desc limit count_limit) e)
    from unnest(array['COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED']) s(status)
    union all
    select 'stale', 'CLAIMED', (select count(*) from (
        select from horsies_tasks t where t.claimed and t.status = 'CLAIMED' and t.claim_expires_at < horsies_now()
        order by t.claim_expires_at limit count_limit) c)
    union all
    select 'workflow', w.status::text, count(*) from (
        select a.status from horsies_workflows a
        where a.status in ('PENDING', 'RUNNING', 'PAUSED') and a.parent_workflow_id is null order by a.status, a.id limit 3 * count_limit) w group by w.status
    union all
    select 'workflow', w.status::text, count(*) from (
        select a.status from horsies_workflows a
        where a.status in ('COMPLETED', 'FAILED', 'CANCELLED') and a.parent_workflow_id is null
        order by coalesce(a.completed_at, a.updated_at, a.created_at) desc limit count_limit) w group by w.status;
end $$;
