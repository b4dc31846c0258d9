-- horsies_notify_capacity: wakes the workers of queues in which ended tasks have freed a place under a cap.
-- Caller: worker/completer.py, in the transaction that ends the tasks. One notification per queue is enough to wake.
create or replace function horsies_notify_capacity(task_ids text[]) returns void
language plpgsql
set search_path from current
as $$
begin
    perform pg_notify('task_new', 'capacity:' || f.id), case when octet_length('task_queue_' || f.queue_name) <= 63
            then pg_notify('task_queue_' || f.queue_name, 'capacity:' || f.id) end
    from (select t.queue_name, min(t.id) as id from horsies_tasks t where t.id = any (task_ids) group by t.queue_name) f
    where horsies_may_notify();
end $$;
