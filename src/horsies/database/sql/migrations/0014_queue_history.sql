-- How queues fared over time, for charts: one row per queue and step, in steps of 10 seconds to 8 hours. Old steps are deleted, so
-- the table stays small whatever the load. The row of the queue '' says that a step was recorded, though nothing may have ended in it.

create table if not exists horsies_queue_history (
    step_s integer not null,
    starts_at timestamptz not null,
    queue_name varchar(100) collate "C" not null,
    completed_count integer not null default 0,
    failed_count integer not null default 0,
    expired_count integer not null default 0,
    start_latencies integer[] not null default '{}',
    run_times integer[] not null default '{}',
    due_count integer,
    oldest_due_s double precision,
    primary key (step_s, starts_at, queue_name)
);
