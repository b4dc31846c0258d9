-- horsies_requeue_stale_claims: CLAIMED -> PENDING (T12) where the claimer shows no sign of life: user code never ran, so this is safe.
-- Caller: recovery/reaper.py, recovery/death_watch.py, recovery/manual.py.  Locks: horsies_tasks, by id, skipping locked rows.
-- dead_owners: dead workers, whose claims need no threshold.
create or replace function horsies_requeue_stale_claims(stale_after interval, dead_owners text[], batch_limit integer) returns integer
language plpgsql
set search_path from current
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    requeued integer;
begin
    with stale as (
        select c.id from horsies_tasks c
        where c.status = 'CLAIMED' and (c.claimed_by_worker_id = any (dead_owners)
            or coalesce(greatest(horsies_sign_of_life(c.claimed_at, now_at), (select max(h.sent_at) from horsies_heartbeats h
                where h.task_id = c.id and h.role = 'claimer' and h.sent_at < now_at + interval '1 year')), '-infinity') < now_at - stale_after
            or c.claimed_at is null)
        order by c.id limit batch_limit for update skip locked
    ), changed as (
        update horsies_tasks t set status = 'PENDING', claimed = false, claimed_at = null, claimed_by_worker_id = null,
            claim_expires_at = null, updated_at = now_at
        from stale s where t.id = s.id
        returning t.id, t.queue_name
    )
    select count(case when octet_length('task_queue_' || c.queue_name) <= 63 and horsies_may_notify()
        then concat(pg_notify('horsies_tasks_returned', c.queue_name), pg_notify('task_queue_' || c.queue_name, c.id)) else '' end) into requeued from changed c;
    return requeued;
end $$;
