-- What operators decide at run time: paused and limited queues, workers that should drain; and who did what, and why.

-- Only queues that are paused or limited at run time have a row: the claim reads this table each time, and finds it empty.
create table if not exists horsies_queue_controls (
    queue_name varchar(100) collate "C" primary key,
    paused_at timestamptz,
    paused_by text,
    pause_reason text,
    max_concurrency integer,
    updated_at timestamptz not null default now()
);

create table if not exists horsies_worker_drains (
    worker_id varchar(255) collate "C" primary key,
    requested_at timestamptz not null default now(),
    requested_by text,
    reason text
);

create table if not exists horsies_audit (
    id bigserial primary key,
    done_at timestamptz not null default now(),
    done_by text not null,
    action varchar(32) not null,
    target text not null,
    reason text,
    details jsonb
);
create index if not exists horsies_audit_done_at_idx on horsies_audit (done_at);

-- The names of the tasks that a worker knows: in its first snapshot and one each hour.
alter table horsies_worker_states add column if not exists task_names varchar[];
