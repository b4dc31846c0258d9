-- horsies_recent_failures: tasks that failed within the window, the latest first, up to a limit, with what they have in common.
-- Caller: the statements failure_groups and failure_ids.  Locks: none; it only reads, so a replica will do.
-- group_key: the same for failures of one task with one code whose tracebacks differ in nothing but numbers and addresses.
create or replace function horsies_recent_failures(since interval, row_limit integer)
returns table (id text, task_name text, error_code text, failed_at timestamptz, message text, traceback text, group_key text)
language plpgsql stable
set search_path from current
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    return query select f.id, f.task_name, f.error_code, f.ended_at, f.message, f.traceback,
        md5(concat_ws(E'\n', f.task_name, f.error_code, regexp_replace(f.traceback, '0x[0-9a-f]+|[0-9]+', '#', 'g')))
    from (
        select t.id::text, t.task_name::text, t.error_code, coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) as ended_at,
            left(coalesce(horsies_error_text(t.result, 'message'), t.failed_reason), 500) as message,
            right(horsies_traceback_of(t.result), 2000) as traceback
        from horsies_tasks t
        where t.status = 'FAILED' and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')
          and coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) >= horsies_now() - since
        order by coalesce(t.completed_at, t.failed_at, t.updated_at, t.created_at) desc limit row_limit) f;
end $$;
