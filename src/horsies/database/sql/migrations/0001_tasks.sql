-- Tasks, their attempts, logs and heartbeats, and the workers' snapshots.
-- "if not exists": the tables may come from the SQLAlchemy mirror, which leaves functions and triggers to us.
-- Ids compare by bytes (collation "C"): they are time-ordered text, and the claim order depends on it.
-- The order of a task's columns: first those of fixed size that are never null, then what indexes read, the texts last. PostgreSQL walks a row
-- from its start, for every index at every update (decision 0007). Tables made before keep their own order.

create table if not exists horsies_tasks (
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now(),
    enqueued_at timestamptz not null default now(),
    priority integer not null default 100,
    retry_count integer not null default 0,
    max_retries integer not null default 0,
    is_workflow_task boolean not null default false,
    claimed boolean not null default false,
    unique_stored boolean not null default false,
    is_held boolean not null default false,
    id varchar(36) collate "C" primary key,
    status varchar collate "C" not null default 'PENDING',
    queue_name varchar(100) collate "C" not null,
    task_name varchar(255) not null,
    enqueue_sha varchar(64) not null,
    claimed_at timestamptz,
    claimed_by_worker_id varchar(255),
    completed_at timestamptz,
    failed_at timestamptz,
    error_code text,
    claim_expires_at timestamptz,
    good_until timestamptz,
    next_retry_at timestamptz,
    cancel_requested_at timestamptz,
    unique_key varchar(255),
    sent_at timestamptz,
    started_at timestamptz,
    worker_pid integer,
    worker_hostname varchar(255),
    worker_process_name varchar(255),
    ahead_number bigint,
    finalizing_at timestamptz,
    finalizing_by_worker_id text,
    rerun_of varchar(36),
    tags text[],
    task_options text,
    args text,
    kwargs text,
    result text,
    failed_reason text
) with (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 1000
);

-- A row is in exactly one of these three by its status, so each state change writes one entry beside the key's.
create index if not exists horsies_tasks_claim_idx on horsies_tasks (queue_name, priority, enqueued_at, id)
    where status = 'PENDING';
create index if not exists horsies_tasks_in_flight_idx on horsies_tasks (queue_name, status)
    where status in ('CLAIMED', 'RUNNING');
create index if not exists horsies_tasks_ended_idx
    on horsies_tasks (status, (coalesce(completed_at, failed_at, updated_at, created_at)))
    where status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED');

-- These are empty for tasks that do not use the feature.
create index if not exists horsies_tasks_lease_idx on horsies_tasks (claim_expires_at) where claimed;
create index if not exists horsies_tasks_good_until_idx on horsies_tasks (good_until)
    where good_until is not null and status = 'PENDING';
create index if not exists horsies_tasks_next_retry_idx on horsies_tasks (next_retry_at) where next_retry_at is not null;
create index if not exists horsies_tasks_error_code_idx on horsies_tasks (error_code) where error_code is not null;
create index if not exists horsies_tasks_cancel_idx on horsies_tasks (claimed_by_worker_id) where cancel_requested_at is not null;
create unique index if not exists horsies_tasks_unique_key_idx on horsies_tasks (task_name, unique_key)
    where unique_key is not null and (unique_stored or status in ('PENDING', 'CLAIMED', 'RUNNING'));

create table if not exists horsies_task_attempts (
    id bigserial primary key,
    task_id varchar(36) collate "C" not null references horsies_tasks (id) on delete cascade,
    attempt integer not null,
    outcome varchar(32) not null check (outcome in ('COMPLETED', 'FAILED', 'WORKER_FAILURE')),
    will_retry boolean not null default false,
    started_at timestamptz not null,
    finished_at timestamptz not null,
    error_code text,
    error_message text,
    failed_reason text,
    worker_id varchar(255),
    worker_hostname varchar(255),
    worker_pid integer,
    worker_process_name varchar(255),
    created_at timestamptz not null default now(),
    unique (task_id, attempt)
);
create index if not exists horsies_task_attempts_error_code_idx on horsies_task_attempts (error_code) where error_code is not null;
create index if not exists horsies_task_attempts_finished_at_idx on horsies_task_attempts (finished_at desc);

create table if not exists horsies_task_logs (
    id bigserial primary key,
    task_id varchar(36) collate "C" not null references horsies_tasks (id) on delete cascade,
    attempt integer not null,
    log text not null,
    truncated boolean not null default false,
    created_at timestamptz not null default now(),
    unique (task_id, attempt)
);

create table if not exists horsies_heartbeats (
    id serial primary key,
    task_id varchar(36) collate "C" not null,
    sender_id varchar(255) not null,
    role varchar(20) not null,
    sent_at timestamptz not null default now(),
    hostname varchar(255),
    pid integer
);
create index if not exists horsies_heartbeats_task_idx on horsies_heartbeats (task_id, role, sent_at desc);
create index if not exists horsies_heartbeats_sent_at_idx on horsies_heartbeats (sent_at);

create table if not exists horsies_worker_states (
    id serial primary key,
    worker_id varchar(255) not null,
    snapshot_at timestamptz not null default now(),
    hostname varchar(255) not null,
    pid integer not null,
    processes integer not null,
    queues varchar[] not null,
    tasks_running integer not null default 0,
    tasks_claimed integer not null default 0,
    memory_usage_mb double precision,
    children_memory_mb double precision,
    cpu_percent double precision,
    memory_percent double precision,
    max_claim_batch integer not null,
    max_claim_per_worker integer not null,
    cluster_wide_cap integer,
    queue_priorities jsonb,
    queue_max_concurrency jsonb,
    recovery_config jsonb,
    worker_started_at timestamptz not null,
    pid_started_at double precision,
    holds_lock boolean not null default false
);
create index if not exists horsies_worker_states_worker_idx on horsies_worker_states (worker_id, snapshot_at desc);
create index if not exists horsies_worker_states_snapshot_at_idx on horsies_worker_states (snapshot_at);

create trigger horsies_task_notify_trigger_insert after insert on horsies_tasks
    referencing new table as inserted
    for each statement execute function horsies_notify_task_changes_insert();
create trigger horsies_task_status_notify_trigger_update after update on horsies_tasks
    referencing old table as before new table as after
    for each statement execute function horsies_notify_task_status_change_update();
create trigger horsies_worker_state_notify_trigger after insert or update on horsies_worker_states
    for each row execute function horsies_notify_worker_state_change();
