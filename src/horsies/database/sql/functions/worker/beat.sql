-- horsies_beat: one write of signs of life for all a worker holds: heartbeat rows, lease renewal, and the mark
-- of outcomes that wait for their write (T5).
-- Caller: worker/heartbeat.py, with what is owed.  Locks: horsies_tasks, skipping locked rows: a sign of life waits for nobody.
create or replace function horsies_beat(
    owner_id text, hostname text, own_pid integer, lease interval, renew_age interval,
    claimed_ids text[], running_ids text[], running_pids integer[], finalizing_ids text[]
) returns void
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
begin
    insert into horsies_heartbeats (task_id, sender_id, role, sent_at, hostname, pid)
    select t.id, owner_id, 'claimer', now_at, hostname, own_pid
    from unnest(claimed_ids) i(id) join horsies_tasks t on t.id between i.id and i.id
    where t.status || '' = 'CLAIMED' and t.claimed_by_worker_id = owner_id
    union all
    select t.id, owner_id || ':' || i.pid, 'runner', now_at, hostname, i.pid
    from unnest(running_ids, running_pids) i(id, pid) join horsies_tasks t on t.id between i.id and i.id
    where t.status || '' = 'RUNNING' and t.claimed_by_worker_id = owner_id;

    update horsies_tasks t set claim_expires_at = now_at + lease, updated_at = now_at
    where t.id = any (array(
        select c.id from unnest(claimed_ids) i(id) join horsies_tasks c on c.id between i.id and i.id
        where c.status || '' = 'CLAIMED' and c.claimed_by_worker_id = owner_id and c.claimed_at > now_at - renew_age
        order by i.id collate "C" for update of c skip locked));

    update horsies_tasks t set finalizing_at = now_at, finalizing_by_worker_id = owner_id, updated_at = now_at
    where t.id = any (array(
        select c.id from unnest(finalizing_ids) i(id) join horsies_tasks c on c.id between i.id and i.id
        where c.status || '' = 'RUNNING' and c.claimed_by_worker_id = owner_id
        order by i.id collate "C" for update of c skip locked));
end $$;
