-- horsies_scan_limit: where the search for a sparse lane ends that begins behind a mark; null when less than 2,000 rows follow.
-- Caller: horsies_claim_tasks.
create or replace function horsies_scan_limit(
    queue text, at_priority integer, now_at timestamptz, start_at timestamptz, start_id text,
    out end_at timestamptz, out end_id text
)
language plpgsql stable
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
begin
    select t.enqueued_at, t.id into end_at, end_id from horsies_tasks t
    where t.status = 'PENDING' and t.queue_name = queue and t.priority = at_priority
      and t.enqueued_at <= now_at and (t.enqueued_at, t.id) > (start_at, start_id)
    order by t.enqueued_at, t.id offset 2000 limit 1;
end $$;
