-- horsies_cancel_tasks: PENDING or CLAIMED -> CANCELLED (T14), by a user's call. Running tasks and workflow nodes are left alone.
-- Caller: operations/cancel.py.  Locks: horsies_tasks, by id.
create or replace function horsies_cancel_tasks(task_ids text[]) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query
        with cancelled as (
            update horsies_tasks t set status = 'CANCELLED', claimed = false, claimed_at = null,
                claimed_by_worker_id = null, claim_expires_at = null, updated_at = now_at
            from unnest(task_ids) i(id)
            where t.id between i.id and i.id and t.status || '' in ('PENDING', 'CLAIMED') and not t.is_workflow_task
            returning t.id)
        -- Grouped, not joined: a join of batch and batch is a loop in a loop.
        select a.id, coalesce(max(a.outcome), 'refused')
        from (select i.id, null as outcome from unnest(task_ids) i(id)
              union all
              select c.id, 'cancelled' from cancelled c) a
        group by a.id;
end $$;
