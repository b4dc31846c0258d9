-- horsies_left_under_cap: how many more tasks may be in flight in a queue, or in all queues when none is named; null without a cap.
-- Caller: horsies_scan_queues, under the claim lock, so that no other claim comes between.
create or replace function horsies_left_under_cap(
    cap integer, queue text, counts_claims boolean, now_at timestamptz
) returns integer
language plpgsql
as $$
declare
    in_flight integer;
begin
    if cap is null then
        return null;
    elsif queue is null then
        select count(*) into in_flight from horsies_tasks t
        where t.status = 'RUNNING' or (counts_claims and t.status = 'CLAIMED' and t.claim_expires_at >= now_at);
    else
        select count(*) into in_flight from horsies_tasks t
        where t.queue_name = queue
          and (t.status = 'RUNNING' or (counts_claims and t.status = 'CLAIMED' and t.claim_expires_at >= now_at));
    end if;
    return cap - in_flight;
end $$;
