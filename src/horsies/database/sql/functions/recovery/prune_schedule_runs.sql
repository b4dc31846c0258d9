-- horsies_prune_schedule_runs: delete one batch of the history of schedules that is older than an age, and say how many. The latest
-- slot that was sent and is forgotten now is noted: whether slots up to it were sent is unknown from then on.
-- Caller: recovery/reaper.py.  Locks: the rows it deletes, locked ones are skipped; then horsies_schedule_horizons, by name.
create or replace function horsies_prune_schedule_runs(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    with deleted as (
        delete from horsies_schedule_runs where ctid = any (array(
            select r.ctid from horsies_schedule_runs r where r.created_at < horsies_now() - older_than
            order by r.created_at limit batch_limit for update skip locked))
        returning schedule_name, slot_at, outcome
    ), noted as (
        insert into horsies_schedule_horizons as h (schedule_name, pruned_until)
        select d.schedule_name, max(d.slot_at) from deleted d where d.outcome = 'sent' group by d.schedule_name order by d.schedule_name
        on conflict (schedule_name) do update set pruned_until = greatest(h.pruned_until, excluded.pruned_until)
    )
    select count(*) into pruned from deleted;
    return pruned;
end $$;
