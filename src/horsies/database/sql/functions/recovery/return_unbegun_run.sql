-- horsies_return_unbegun_run: RUNNING -> PENDING for a run whose user code never began: no attempt. CANCELLED if someone asked for its end,
-- or its workflow is.
-- Caller: horsies_fail_lost_runs, horsies_return_unpermitted_runs, which have locked the row.
create or replace function horsies_return_unbegun_run(run_id text) returns void
language plpgsql
set search_path from current
as $$
begin
    update horsies_tasks t set status = case when t.cancel_requested_at is null
            and (not t.is_workflow_task or horsies_stopped_workflow(t.id) is distinct from 'CANCELLED') then 'PENDING' else 'CANCELLED' end,
        claimed = false, claimed_at = null, claimed_by_worker_id = null, claim_expires_at = null, started_at = null,
        worker_pid = null, worker_hostname = null, worker_process_name = null, ahead_number = null,
        finalizing_at = null, finalizing_by_worker_id = null, cancel_requested_at = null, updated_at = horsies_now()
    where t.id = run_id;
end $$;
