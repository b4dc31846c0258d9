-- horsies_scan_limit: the row at which the scan of a sparse lane ends, 2,000 rows behind its mark; null when fewer follow.
-- Caller: horsies_scan_lane, under the planner settings of horsies_claim_tasks_v2.  Locks: none.
create or replace function horsies_scan_limit(
    queue text, at_priority integer, start_at timestamptz, start_id text, now_at timestamptz,
    out end_at timestamptz, out end_id text
)
language plpgsql stable
as $$
begin
    select t.enqueued_at, t.id into end_at, end_id from horsies_tasks t
    where t.status = 'PENDING' and t.queue_name = queue and t.priority = at_priority
      and t.enqueued_at <= now_at and (t.enqueued_at, t.id) > (start_at, start_id)
    order by t.enqueued_at, t.id offset 2000 limit 1;
end $$;
