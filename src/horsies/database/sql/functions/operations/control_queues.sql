-- What operators change at run time, each with its entry in horsies_audit. Workers take note at their next claim.
-- Caller: operations/control.py.  Locks: rows of horsies_queue_controls and horsies_worker_drains.

-- horsies_pause_queue: nothing of this queue is claimed until it is resumed; false if it was paused already.
create or replace function horsies_pause_queue(queue text, actor text, reason text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    insert into horsies_queue_controls as c (queue_name, paused_at, paused_by, pause_reason, updated_at)
    values (queue, horsies_now(), actor, reason, horsies_now())
    on conflict (queue_name) do update
        set paused_at = excluded.paused_at, paused_by = excluded.paused_by, pause_reason = excluded.pause_reason, updated_at = excluded.updated_at
        where c.paused_at is null;
    if not found then
        return false;
    end if;
    perform horsies_record_action(actor, 'pause', 'queue ' || queue, reason, null);
    return true;
end $$;

-- horsies_resume_queue: the queue goes on, and its workers are told; false if it was not paused.
create or replace function horsies_resume_queue(queue text, actor text, reason text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    update horsies_queue_controls c set paused_at = null, paused_by = null, pause_reason = null, updated_at = horsies_now()
    where c.queue_name = queue and c.paused_at is not null;
    if not found then
        return false;
    end if;
    delete from horsies_queue_controls c where c.queue_name = queue and c.max_concurrency is null;
    perform horsies_tell_queue(queue);
    perform horsies_record_action(actor, 'resume', 'queue ' || queue, reason, null);
    return true;
end $$;

-- horsies_limit_queue: at most so many tasks of this queue are in flight, whatever the configuration says; null goes back to it.
create or replace function horsies_limit_queue(queue text, new_limit integer, actor text, reason text) returns void
language plpgsql
set search_path from current
as $$
begin
    insert into horsies_queue_controls as c (queue_name, max_concurrency, updated_at) values (queue, new_limit, horsies_now())
    on conflict (queue_name) do update set max_concurrency = excluded.max_concurrency, updated_at = excluded.updated_at;
    delete from horsies_queue_controls c where c.queue_name = queue and c.max_concurrency is null and c.paused_at is null;
    perform horsies_tell_queue(queue);
    perform horsies_record_action(actor, 'limit', 'queue ' || queue, reason, jsonb_build_object('max_concurrency', new_limit));
end $$;

-- horsies_drain_worker: this worker ends as after SIGTERM, when it stores its next snapshot; false if it was told already.
create or replace function horsies_drain_worker(worker text, actor text, reason text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    insert into horsies_worker_drains (worker_id, requested_at, requested_by, reason) values (worker, horsies_now(), actor, reason)
    on conflict (worker_id) do nothing;
    if not found then
        return false;
    end if;
    perform horsies_record_action(actor, 'drain', 'worker ' || worker, reason, null);
    return true;
end $$;

-- horsies_record_action: who did what to what, and why.
create or replace function horsies_record_action(actor text, action text, target text, reason text, details jsonb) returns void
language plpgsql
set search_path from current
as $$
begin
    insert into horsies_audit (done_at, done_by, action, target, reason, details)
    values (horsies_now(), actor, action, left(target, 2000), reason, details);
end $$;

-- horsies_tell_queue: wakes the workers of a queue.
create or replace function horsies_tell_queue(queue text) returns void
language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() then
        perform pg_notify('task_new', 'queue:' || queue), case when octet_length('task_queue_' || queue) <= 63
            then pg_notify('task_queue_' || queue, 'queue:' || queue) end;
    end if;
end $$;
