-- horsies_return_unheld_tasks_v2: RUNNING or CLAIMED -> PENDING for rows of one worker that nobody holds; CANCELLED if someone asked for that.
-- They are claims whose answer was lost with a connection: user code never began, so no attempt is counted.
-- Callers: worker/lost_claims.py after a claim statement failed (the worker knows what it holds); recovery/lost_runs.py for a dead
-- worker whose begun slots tell what had begun.
-- Locks: workflows; horsies_tasks, by id, skipping locked rows. What belongs to a cancelled workflow is CANCELLED. remaining: how many were locked by another session; the caller comes again.
create or replace function horsies_return_unheld_tasks_v2(owner_id text, held_ids text[])
returns table (returned integer, remaining integer)
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    unheld_ids text[] := array(
        select t.id from horsies_tasks t
        where t.status in ('CLAIMED', 'RUNNING') and t.claimed_by_worker_id = owner_id and not t.id = any (held_ids));
    of_workflows text[];
begin
    of_workflows := array(select t.id::text from horsies_tasks t where t.id = any (unheld_ids) and t.is_workflow_task);
    if of_workflows <> '{}' then
        perform horsies_lock_workflows_of_tasks(of_workflows);
    end if;
    update horsies_tasks t set status = case when t.cancel_requested_at is null
            and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is distinct from 'CANCELLED') then 'PENDING' else 'CANCELLED' end,
        claimed = false, claimed_at = null, claimed_by_worker_id = null,
        claim_expires_at = null, started_at = null, worker_pid = null, worker_hostname = null,
        worker_process_name = null, cancel_requested_at = null, updated_at = now_at
    where t.id = any (array(
        select c.id from horsies_tasks c
        where c.id = any (unheld_ids) and c.status || '' in ('CLAIMED', 'RUNNING') and c.claimed_by_worker_id = owner_id
        order by c.id for update skip locked));
    get diagnostics returned = row_count;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
    remaining := cardinality(unheld_ids) - returned;
    return next;
end $$;
