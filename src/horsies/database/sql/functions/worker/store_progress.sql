-- horsies_store_progress: what running tasks have reported last, one row per task; answers how many were stored.
-- Caller: worker/progress.py once a second; worker/completer.py with the end of an attempt.  Locks: horsies_tasks for key share, by id.
-- A task that is gone is left out, and the report of an earlier attempt does not replace that of a later one.
create or replace function horsies_store_progress(
    task_ids text[], attempts integer[], done double precision[], totals double precision[], notes text[]
) returns integer
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    stored integer;
begin
    insert into horsies_task_progress as p (task_id, attempt, done, total, note, updated_at)
    select r.id, r.attempt, r.done, r.total, r.note, horsies_now()
    from (select t.id, i.attempt, i.done, i.total, i.note
          from unnest(task_ids, attempts, done, totals, notes) i(id, attempt, done, total, note)
          join horsies_tasks t on t.id between i.id and i.id
          order by i.id collate "C" for key share of t) r
    on conflict (task_id) do update
        set attempt = excluded.attempt, done = excluded.done, total = excluded.total, note = excluded.note, updated_at = excluded.updated_at
        where excluded.attempt >= p.attempt;
    get diagnostics stored = row_count;
    return stored;
end $$;
