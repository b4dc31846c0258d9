-- horsies_follow_workflow_status: what the status of a workflow means for its tasks and nodes, whoever changed it, also by hand.
-- PAUSED: waiting tasks are held and claims go back unstarted; what runs is held should it be tried again
-- (docs/contract/workflows.md, 7.1).  RUNNING again: held tasks are due now, which puts them before every claim's mark.
-- CANCELLED: what has not started will not (docs/contract/workflows.md, 7.3). A node whose task has ended unnoticed takes over its
-- result, and one whose task has vanished is skipped. What still runs stays counted in open_nodes: recovery looks after it.
-- Trigger of horsies_workflows.  Locks: horsies_tasks, by id. A claim that is past its deadline stays for its worker to expire (T11).
create or replace function horsies_follow_workflow_status() returns trigger
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
    own_tasks text[];
begin
    if new.status not in ('PAUSED', 'CANCELLED') and old.status <> 'PAUSED' then
        return null;
    end if;
    select array_agg(t.id::text) into own_tasks from (
        select t.id from horsies_workflow_tasks n join horsies_tasks t on t.id = n.task_id
        where n.workflow_id = new.id and n.status in ('ENQUEUED', 'RUNNING') and t.status || '' in ('PENDING', 'CLAIMED', 'RUNNING')
        order by t.id for update of t) t;

    if new.status in ('PAUSED', 'CANCELLED') and own_tasks <> '{}' and horsies_may_notify() then
        perform pg_notify('horsies_workflow_stop', '');
    end if;
    if new.status = 'PAUSED' then
        update horsies_tasks t set is_held = true, updated_at = now_at where t.id = any (own_tasks);
        update horsies_tasks t set status = 'PENDING', claimed = false, claimed_at = null, claimed_by_worker_id = null, claim_expires_at = null
        where t.id = any (own_tasks) and t.status || '' = 'CLAIMED' and (t.good_until is null or t.good_until > now_at);
    elsif new.status = 'RUNNING' then
        update horsies_tasks t set is_held = false, updated_at = now_at,
            enqueued_at = case when t.status = 'PENDING' then greatest(t.enqueued_at, now_at) else t.enqueued_at end
        where t.id = any (own_tasks) and t.is_held;
        perform pg_notify('task_queue_' || q.queue_name, new.id)
        from (select distinct t.queue_name from horsies_tasks t where t.id = any (own_tasks)) q
        where octet_length('task_queue_' || q.queue_name) <= 63 and horsies_may_notify();
    elsif new.status = 'CANCELLED' then
        update horsies_tasks t set status = 'CANCELLED', claimed = false, claimed_at = null, claimed_by_worker_id = null,
            claim_expires_at = null, is_held = false, updated_at = now_at
        where t.id = any (own_tasks) and t.status || '' in ('PENDING', 'CLAIMED');
        update horsies_workflow_tasks n set status = 'SKIPPED', started_at = null, wait_until = null
        where n.workflow_id = new.id and (n.status in ('PENDING', 'READY')
            or n.status in ('ENQUEUED', 'RUNNING') and n.kind in ('sleep', 'event')
            or n.status in ('ENQUEUED', 'RUNNING') and n.kind = 'task'
                and coalesce((select t.status from horsies_tasks t where t.id = n.task_id), 'CANCELLED') = 'CANCELLED');
        perform horsies_settle_nodes(array(
            select t.id::text from horsies_workflow_tasks n join horsies_tasks t on t.id = n.task_id
            where n.workflow_id = new.id and n.status in ('ENQUEUED', 'RUNNING') and t.status || '' in ('COMPLETED', 'FAILED', 'EXPIRED')), true);
        update horsies_workflows w set open_nodes = (
            select count(*) from horsies_workflow_tasks n where n.workflow_id = w.id and n.status not in ('COMPLETED', 'FAILED', 'SKIPPED'))
        where w.id = new.id;
    end if;
    return null;
end $$;

-- horsies_notify_event: an event has come; the workers deliver it to the nodes that wait for it.
create or replace function horsies_notify_event() returns trigger
language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() then
        perform pg_notify('horsies_workflow_wake', '');
    end if;
    return null;
end $$;
