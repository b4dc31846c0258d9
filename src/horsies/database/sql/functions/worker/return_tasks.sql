-- horsies_return_tasks: CLAIMED -> PENDING (T13), work a worker claimed and will not start.
-- Caller: worker/buffer.py.  Locks: horsies_tasks, by id (the caller sorts).
create or replace function horsies_return_tasks(owner_id text, task_ids text[], claims timestamptz[])
returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with returned as (
            update horsies_tasks t set status = 'PENDING', claimed = false, claimed_at = null,
                claimed_by_worker_id = null, claim_expires_at = null, updated_at = now_at
            from unnest(task_ids, claims) i(id, claim)
            where t.id between i.id and i.id and t.status || '' = 'CLAIMED' and t.claimed_by_worker_id = owner_id
              and t.claimed_at = i.claim
            returning t.id, t.queue_name
        ), told as (
            select pg_notify('horsies_tasks_returned', r.queue_name), pg_notify('task_queue_' || r.queue_name, r.id) from returned r
            where octet_length('task_queue_' || r.queue_name) <= 63 and horsies_may_notify()
        )
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'claim_lost')
        from (select i.id, null as outcome from unnest(task_ids) i(id)
              union all
              select r.id, 'returned' from returned r) a
        where (select count(*) from told) >= 0
        group by a.id;
end $$;
