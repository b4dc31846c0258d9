-- horsies_request_cancel: stores the wish to end RUNNING tasks and tells their workers; waiting ones are cancelled at once (T14).
-- Caller: operations/cancel.py.  Locks: horsies_tasks, by id.
create or replace function horsies_request_cancel(task_ids text[]) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
as $$
#variable_conflict use_column
begin
    -- First the locks: a task that starts or ends meanwhile must not be waiting for one half of what follows and running for the other.
    perform from unnest(task_ids) i(id) join horsies_tasks t on t.id between i.id and i.id
    order by i.id collate "C" for update of t;
    return query
        with cancelled as (
            select c.task_id, c.outcome from horsies_cancel_tasks(task_ids) c
        ), requested as (
            update horsies_tasks t set cancel_requested_at = horsies_now(), updated_at = horsies_now()
            from cancelled c
            where c.outcome = 'refused' and t.id = c.task_id and t.status || '' = 'RUNNING' and not t.is_workflow_task
            returning t.id, case when horsies_may_notify() then pg_notify('horsies_cancel', t.id) end as told
        )
        select c.task_id, case when c.outcome = 'cancelled' then 'cancelled'
                               when r.id is not null then 'requested' else 'refused' end
        from cancelled c left join requested r on r.id = c.task_id;
end $$;
