-- The sends on our own connections: stored, committed, and only then told (decision 0015). In the user's transaction: horsies_enqueue_tasks.

-- horsies_send_task: - -> PENDING for one plain row (T1), for half the server's work of horsies_enqueue_tasks; an error when the id is taken.
-- Caller: sending/enqueuer.py.
-- The parameters are the first fields of NewTask in sending/rows.py.
create or replace procedure horsies_send_task(
    id text,
    task_name text,
    queue_name text,
    priority integer,
    args text,
    kwargs text,
    sent_at timestamptz,
    enqueued_at timestamptz,
    delay_s double precision,
    good_until timestamptz,
    max_retries integer,
    task_options text,
    enqueue_sha text
)
language plpgsql
as $$
#variable_conflict use_variable
declare
    now_at timestamptz := horsies_now();
begin
    perform set_config('horsies.is_told_later', 'on', true);
    insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, good_until, max_retries,
        task_options, enqueue_sha, created_at, updated_at)
    values (id, task_name, queue_name, priority, args, kwargs, sent_at,
        coalesce(enqueued_at, now_at + make_interval(secs => delay_s), now_at), good_until, max_retries,
        task_options, enqueue_sha, now_at, now_at);
    commit;
    -- As horsies_tell_new, for a single task at half the price. Nothing in it can fail: what is committed must not be answered with an error.
    perform pg_notify('horsies_task_status', id), pg_notify('task_new', id),
        case when octet_length('task_queue_' || queue_name) <= 63 then pg_notify('task_queue_' || queue_name, id) end
    where horsies_may_notify();
end $$;

-- horsies_send_tasks: horsies_enqueue_tasks for a batch, whose receipts it returns as two arrays in input order.
-- Caller: sending/enqueuer.py.  Locks: as horsies_enqueue_tasks.
create or replace procedure horsies_send_tasks(
    id text[],
    task_name text[],
    queue_name text[],
    priority integer[],
    args text[],
    kwargs text[],
    sent_at timestamptz[],
    enqueued_at timestamptz[],
    delay_s double precision[],
    good_until timestamptz[],
    max_retries integer[],
    task_options text[],
    enqueue_sha text[],
    unique_key text[],
    unique_stored boolean[],
    tags text[],
    inout found_ids text[],
    inout outcomes text[]
)
language plpgsql
as $$
#variable_conflict use_variable
begin
    perform set_config('horsies.is_told_later', 'on', true);
    select array_agg(r.task_id), array_agg(r.outcome) into found_ids, outcomes
    from horsies_enqueue_tasks(id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, delay_s, good_until,
        max_retries, task_options, enqueue_sha, unique_key, unique_stored, tags) r;
    commit;
    begin
        perform horsies_tell_new(array_agg(n.id), array_agg(n.queue_name), cardinality(id) > 10)
        from (select min(i.id) as id, i.queue_name from unnest(id, queue_name, outcomes) i(id, queue_name, outcome)
              where i.outcome = 'created' group by i.queue_name, case when cardinality(id) <= 10 then i.id end) n;
    exception when others then
        null;
    end;
end $$;
