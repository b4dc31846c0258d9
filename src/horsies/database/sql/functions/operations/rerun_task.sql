-- horsies_rerun_task: a new PENDING row with the input of an ended one (T1), by a user's call; the old row is untouched.
-- Caller: operations/requeue.py. Returns the new id, or null when there is no such ended task. The old deadline and unique key stay behind.
-- Asked again with the same new id, because its first answer was lost, it answers the same.
create or replace function horsies_rerun_task(ended_id text, new_id text, sent_at timestamptz, good_until timestamptz) returns text
language plpgsql
set search_path from current
as $$
#variable_conflict use_variable
begin
    insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, good_until,
        max_retries, task_options, enqueue_sha, rerun_of, tags)
    select new_id, t.task_name, t.queue_name, t.priority, t.args, t.kwargs, sent_at, horsies_now(), good_until,
        coalesce(substring(t.task_options from '"max_retries": ?([0-9]{1,3})')::integer, 0),
        t.task_options, t.enqueue_sha, t.id, t.tags
    from horsies_tasks t
    where t.id = ended_id and t.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED') and not t.is_workflow_task
    on conflict (id) do nothing;
    return (select t.id from horsies_tasks t where t.id = new_id and t.rerun_of = ended_id);
end $$;
