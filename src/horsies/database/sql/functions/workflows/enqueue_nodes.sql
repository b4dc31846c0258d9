-- horsies_enqueue_nodes: - -> PENDING for the tasks of nodes (T1); a task has the id of its node. A node that is run again, by
-- horsies_retry_workflow, has its row already: it goes back to PENDING (T15) and its attempts go on counting.
-- Caller: horsies_ready_nodes.
create or replace function horsies_enqueue_nodes(node_ids text[]) returns void
language plpgsql
set search_path from current
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
as $$
declare
    now_at timestamptz := horsies_now();
    announced integer;
begin
    if node_ids = '{}' then
        return;
    end if;
    with stored as (
        insert into horsies_tasks as t (id, task_name, queue_name, priority, kwargs, sent_at, enqueued_at, good_until, max_retries,
            task_options, enqueue_sha, is_workflow_task, created_at, updated_at)
        select n.id, n.task_name, n.queue_name, n.priority, horsies_node_kwargs(n.id),
            (select w.sent_at from horsies_workflows w where w.id = n.workflow_id), now_at, n.good_until, n.max_retries,
            n.task_options, n.id, true, now_at, now_at
        from horsies_workflow_tasks n
        where n.id = any (node_ids)
        order by n.id
        on conflict (id) do update set
            status = 'PENDING', kwargs = excluded.kwargs, enqueued_at = now_at, good_until = excluded.good_until,
            retry_count = coalesce((select max(a.attempt) from horsies_task_attempts a where a.task_id = t.id), 0),
            max_retries = excluded.max_retries + coalesce((select max(a.attempt) from horsies_task_attempts a where a.task_id = t.id), 0),
            result = null, error_code = null, failed_reason = null, completed_at = null, failed_at = null, started_at = null,
            next_retry_at = null, claimed = false, claimed_at = null, claimed_by_worker_id = null, claim_expires_at = null,
            worker_pid = null, worker_hostname = null, worker_process_name = null, finalizing_at = null,
            finalizing_by_worker_id = null, cancel_requested_at = null, is_held = false, updated_at = now_at
        returning t.id, t.queue_name, t.xmax <> 0 as is_again)
    -- New rows are announced by the trigger; these are none.
    select count(pg_notify('task_queue_' || q.queue_name, q.id)) into announced
    from (select s.queue_name, min(s.id) as id from stored s where s.is_again group by s.queue_name) q
    where octet_length('task_queue_' || q.queue_name) <= 63 and horsies_may_notify();
end $$;
