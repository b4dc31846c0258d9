-- horsies_take_duties: those of these duties that are due, now taken by this worker; another that asks meanwhile gets none of them.
-- A duty is due an interval after it was taken, by the interval of who asks. So a worker that dies at it costs one interval.
-- Caller: recovery/duties.py.  Locks: horsies_duties, skipping locked rows.
create or replace function horsies_take_duties(worker_id text, duties text[], intervals interval[]) returns table (name text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
begin
    if exists (select from unnest(duties) i(name) where not exists (select from horsies_duties d where d.name = i.name)) then
        insert into horsies_duties (name) select i.name from unnest(duties) i(name) order by i.name on conflict do nothing;
    end if;
    return query
        with due as materialized (
            select d.name, i.every from horsies_duties d join unnest(duties, intervals) i(name, every) on i.name = d.name
            -- Also when the clock was set back far; a little later than now it was taken while this waited.
            where d.taken_at is null or d.taken_at not between now_at - i.every * 0.9 and now_at + i.every
            for update of d skip locked)
        update horsies_duties d set taken_at = now_at, taken_by = worker_id, due_at = now_at + due.every
        from due where d.name = due.name returning d.name::text;
end $$;

-- horsies_finish_duty: a duty was done, or why it could not be; unless another worker has taken it since.
-- Caller: recovery/duties.py.  Locks: its row.
create or replace function horsies_finish_duty(worker_id text, duty text, reason text) returns void
language plpgsql
set search_path from current
as $$
begin
    update horsies_duties d set done_at = case when reason is null then horsies_now() else d.done_at end, failure = reason
    where d.name = duty and d.taken_by = worker_id;
end $$;
