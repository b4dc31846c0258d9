-- horsies_return_unheld_tasks: RUNNING or CLAIMED -> PENDING for rows of one worker that nobody holds.
-- They are claims whose answer was lost with a connection: user code never began, so no attempt is counted.
-- Callers: worker/claimer.py after a claim statement failed (the worker knows what it holds); recovery/lost_runs.py for a dead
-- worker whose begun slots tell what had begun.
-- Locks: workflows; horsies_tasks, by id. What belongs to a cancelled workflow is CANCELLED.
create or replace function horsies_return_unheld_tasks(owner_id text, held_ids text[]) returns integer
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    returned integer;
    of_workflows text[] := array(
        select t.id::text from horsies_tasks t
        where t.status in ('CLAIMED', 'RUNNING') and t.claimed_by_worker_id = owner_id and t.is_workflow_task and not t.id = any (held_ids));
begin
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
        where c.status in ('CLAIMED', 'RUNNING') and c.claimed_by_worker_id = owner_id and not c.id = any (held_ids)
        order by c.id for update));
    get diagnostics returned = row_count;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
    return returned;
end $$;
