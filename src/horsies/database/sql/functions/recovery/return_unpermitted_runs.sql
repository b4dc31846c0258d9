-- horsies_return_unpermitted_runs: RUNNING -> PENDING for what a worker without its session lock has taken ahead and may not begin.
-- Caller: recovery/death_watch.py.  Locks: workflows; the worker's permit lock, if it is free; horsies_tasks, by id, skipping
-- locked rows. What belongs to a cancelled workflow is CANCELLED, and its node ends with it.
-- Should the worker live, it learns with its next permit that these rows are no longer its own, and begins none of them.
create or replace function horsies_return_unpermitted_runs(owner_id text, batch_limit integer) returns integer
language plpgsql
set search_path from current
as $$
declare
    permitted bigint[];
    ahead record;
    of_workflows text[];
    returned integer := 0;
begin
    if not exists (select from horsies_worker_permits p where p.worker_id = owner_id) then
        return 0;
    end if;
    of_workflows := array(
        select t.id::text from horsies_tasks t
        where t.status = 'RUNNING' and t.claimed_by_worker_id = owner_id and t.is_workflow_task and t.ahead_number is not null);
    if of_workflows <> '{}' then
        perform horsies_lock_workflows_of_tasks(of_workflows);
    end if;
    permitted := horsies_void_ahead(owner_id);
    for ahead in
        select t.id from horsies_tasks t
        where t.status = 'RUNNING' and t.claimed_by_worker_id = owner_id
          and t.ahead_number > permitted[1 + (t.ahead_number >> 56)]
        order by t.id limit batch_limit for update skip locked
    loop
        perform horsies_return_unbegun_run(ahead.id);
        returned := returned + 1;
    end loop;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
    return returned;
end $$;
