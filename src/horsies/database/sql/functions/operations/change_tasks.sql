-- What operators change on tasks that wait or have ended, by a user's call. Nodes of workflows are left alone.
-- Caller: operations/actions.py.  Locks: horsies_tasks, by id. A task in another state answers 'refused'.

-- horsies_reschedule_tasks: PENDING tasks become due at another time, retries too; null is now.
create or replace function horsies_reschedule_tasks(task_ids text[], due_at timestamptz) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
as $$
declare
    new_at timestamptz := coalesce(due_at, horsies_now());
begin
    return query
        with held as (
            select t.id from horsies_tasks t
            where t.id = any (task_ids) and t.status || '' = 'PENDING' and not t.is_workflow_task
            order by t.id for update
        ), changed as (
            update horsies_tasks t set enqueued_at = new_at, updated_at = horsies_now(),
                next_retry_at = case when t.next_retry_at is not null then new_at end
            from held h where t.id = h.id
            returning t.id, t.queue_name
        ), told as (
            select horsies_tell_queue(c.queue_name) from (select distinct queue_name from changed) c
        )
        select i.id, case when c.id is null then 'refused' else 'rescheduled' end
        from unnest(task_ids) i(id) left join changed c on c.id = i.id
        where (select count(*) from told) >= 0;
end $$;

-- horsies_reprioritise_tasks: PENDING tasks get another priority of 1 to 100, as a send takes it; lower is better.
create or replace function horsies_reprioritise_tasks(task_ids text[], new_priority integer) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
as $$
begin
    return query
        with held as (
            select t.id from horsies_tasks t
            where t.id = any (task_ids) and t.status || '' = 'PENDING' and not t.is_workflow_task and new_priority between 1 and 100
            order by t.id for update
        ), changed as (
            update horsies_tasks t set priority = new_priority, updated_at = horsies_now()
            from held h where t.id = h.id
            returning t.id, t.queue_name
        ), told as (
            select horsies_tell_queue(c.queue_name) from (select distinct queue_name from changed) c
        )
        select i.id, case when c.id is null then 'refused' else 'reprioritised' end
        from unnest(task_ids) i(id) left join changed c on c.id = i.id
        where (select count(*) from told) >= 0;
end $$;

-- horsies_delete_tasks: ended tasks go, with their attempts and output.
create or replace function horsies_delete_tasks(task_ids text[]) returns table (task_id text, outcome text)
language plpgsql
set search_path from current
as $$
begin
    return query
        with held as (
            select t.id from horsies_tasks t
            where t.id = any (task_ids) and t.status || '' in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED') and not t.is_workflow_task
            order by t.id for update
        ), deleted as (
            delete from horsies_tasks t using held h where t.id = h.id returning t.id
        )
        select i.id, case when d.id is null then 'refused' else 'deleted' end
        from unnest(task_ids) i(id) left join deleted d on d.id = i.id;
end $$;
