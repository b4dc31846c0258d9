-- horsies_prune_schedule_runs: delete one batch of the history of schedules that is older than an age, and say how many.
-- Caller: horsies_sweep.  Locks: the rows it deletes; locked ones are skipped.
create or replace function horsies_prune_schedule_runs(older_than interval, batch_limit integer) returns integer
language plpgsql set search_path from current as $$
declare pruned integer;
begin
    delete from horsies_schedule_runs where ctid = any (array(
        select r.ctid from horsies_schedule_runs r where r.created_at < horsies_now() - older_than
        order by r.created_at limit batch_limit for update skip locked));
    get diagnostics pruned = row_count;
    return pruned;
end $$;
