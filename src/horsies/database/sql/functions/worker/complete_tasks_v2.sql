-- horsies_complete_tasks_v2: horsies_complete_tasks, and a permit for what comes next, in one transaction and one round trip.
-- Caller: worker/completer.py.  Locks: as horsies_complete_tasks, then as horsies_grant_permit.
-- Returns the refused ends, and a row without task: up to which numbers rows have been taken back.
create or replace function horsies_complete_tasks_v2(
    owner_id text, task_ids text[], claims timestamptz[], attempts integer[], results text[], permit jsonb
) returns table (task_id text, outcome text, voided bigint[])
language plpgsql
set search_path from current
as $$
#variable_conflict use_variable
begin
    return query select c.task_id, c.outcome, null::bigint[] from horsies_complete_tasks(owner_id, task_ids, claims, attempts, results) c;
    return query select null::text, null::text, horsies_grant_permit(owner_id, permit);
end $$;
