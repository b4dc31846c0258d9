-- horsies_store_logs: captured output per attempt, in the transaction that ends the attempt.
-- Caller: worker/completer.py. A log of an attempt that another worker took over (no such task any more) is dropped.
create or replace function horsies_store_logs(task_ids text[], attempts integer[], logs text[], truncated boolean[]) returns integer
language plpgsql
set search_path from current
as $$
declare
    stored integer;
begin
    insert into horsies_task_logs (task_id, attempt, log, truncated)
    select i.id, i.attempt, i.log, i.truncated from unnest(task_ids, attempts, logs, truncated) i(id, attempt, log, truncated)
    where exists (select from horsies_task_attempts a where a.task_id = i.id and a.attempt = i.attempt)
    on conflict do nothing;
    get diagnostics stored = row_count;
    return stored;
end $$;
