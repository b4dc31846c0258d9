-- horsies_return_unheld_tasks: RUNNING or CLAIMED -> PENDING for rows of one worker that nobody holds.
-- As workers of 0.2.0 call it; it waits for rows that another session has locked.
-- Caller: none of this release.  Locks: horsies_tasks, by id.
create or replace function horsies_return_unheld_tasks(owner_id text, held_ids text[]) returns integer
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    returned integer;
begin
    update horsies_tasks t set status = case when t.cancel_requested_at is null then 'PENDING' else 'CANCELLED' end, claimed = false, claimed_at = null, claimed_by_worker_id = null,
        claim_expires_at = null, started_at = null, worker_pid = null, worker_hostname = null,
        worker_process_name = null, cancel_requested_at = null, updated_at = now_at
    where t.id = any (array(
        select c.id from horsies_tasks c
        where c.status in ('CLAIMED', 'RUNNING') and c.claimed_by_worker_id = owner_id and not c.id = any (held_ids)
        order by c.id for update));
    get diagnostics returned = row_count;
    return returned;
end $$;
