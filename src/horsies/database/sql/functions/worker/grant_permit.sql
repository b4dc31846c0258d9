-- horsies_grant_permit: the worker may begin what it has taken ahead up to these numbers, one per lane; the permit before is replaced.
-- Caller: horsies_claim_tasks_v2, horsies_end_tasks, worker/completer.py.  Locks: the worker's permit lock, shared.
-- grant: {"granted_by", "number", "last_number", "permitted"}; each of the two writers of a worker has a series of its own.
-- Returns up to which numbers recovery has taken rows back, per lane: they must not begin.
create or replace function horsies_grant_permit(owner_id text, permit jsonb) returns bigint[]
language plpgsql
set search_path from current
as $$
begin
    perform pg_advisory_xact_lock_shared(horsies_lock_key('permit:' || owner_id));
    insert into horsies_worker_permits (worker_id, granted_by, grant_number, permitted, granted_at)
    values (owner_id, permit ->> 'granted_by', (permit ->> 'number')::bigint,
        array(select value::bigint from jsonb_array_elements_text(permit -> 'permitted')), horsies_now());
    delete from horsies_worker_permits p
    where p.worker_id = owner_id and p.granted_by = permit ->> 'granted_by'
      and p.grant_number >= (permit ->> 'last_number')::bigint and p.grant_number < (permit ->> 'number')::bigint;
    return coalesce((select p.permitted from horsies_worker_permits p
        where p.worker_id = owner_id and p.granted_by = 'void' and p.grant_number = 0), '{}');
end $$;
