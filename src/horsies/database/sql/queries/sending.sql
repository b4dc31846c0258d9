-- New tasks.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: insert_task
-- One plain row, for half the server's work of horsies_enqueue_tasks; an error when the id is taken.
insert into horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, enqueued_at, good_until, max_retries,
    task_options, enqueue_sha, created_at, updated_at)
values (%(id)s, %(task_name)s, %(queue_name)s, %(priority)s, %(args)s, %(kwargs)s, %(sent_at)s,
    coalesce(%(enqueued_at)s, horsies_now() + make_interval(secs => %(delay_s)s), horsies_now()), %(good_until)s, %(max_retries)s,
    %(task_options)s, %(enqueue_sha)s, horsies_now(), horsies_now());

-- name: copy_tasks
copy horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, good_until, max_retries, task_options,
    enqueue_sha) from stdin;
