-- What the scheduler remembers of each schedule.

create table if not exists horsies_schedule_state (
    schedule_name varchar(255) primary key,
    last_run_at timestamptz,
    next_run_at timestamptz,
    last_task_id varchar(36) collate "C",
    run_count integer not null default 0,
    config_hash varchar(64),
    updated_at timestamptz not null default now()
);
create index if not exists horsies_schedule_state_next_run_idx on horsies_schedule_state (next_run_at);
