-- horsies_release_expired_claims: CLAIMED -> PENDING where the lease has passed: the first half of T3, the claim that follows is the other.
-- Caller: horsies_claim_tasks_v2 on a full scan.  Locks: horsies_tasks, by id, skipping locked rows.
create or replace function horsies_release_expired_claims(now_at timestamptz) returns integer
language plpgsql
set search_path from current
set enable_bitmapscan = on  -- both off in the caller, for its scans
set enable_sort = on
as $$
declare
    released integer;
begin
    update horsies_tasks t set
        status = 'PENDING',
        claimed = false,
        claimed_at = null,
        claimed_by_worker_id = null,
        claim_expires_at = null,
        updated_at = now_at
    where t.id = any (array(
        select c.id from horsies_tasks c
        where c.claimed and c.claim_expires_at < now_at and c.status = 'CLAIMED'
        order by c.id limit 1000 for update skip locked));
    get diagnostics released = row_count;
    return released;
end $$;
