-- New tasks.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: copy_tasks
copy horsies_tasks (id, task_name, queue_name, priority, args, kwargs, sent_at, good_until, max_retries, task_options,
    enqueue_sha) from stdin;
