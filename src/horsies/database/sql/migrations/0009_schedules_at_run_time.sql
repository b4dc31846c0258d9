-- Schedules that are steered at run time: who owns them, whether they are paused, what each slot became.

alter table horsies_schedule_state add column if not exists owner varchar(255) not null default 'default';
alter table horsies_schedule_state add column if not exists paused_at timestamptz;
alter table horsies_schedule_state add column if not exists pause_reason text;
create index if not exists horsies_schedule_state_due_idx on horsies_schedule_state (owner, next_run_at, schedule_name)
    where paused_at is null;

-- Schedules that were added at run time; those in code are in no table.
create table if not exists horsies_schedules (
    name varchar(255) primary key,
    owner varchar(255) not null default 'default',
    definition jsonb not null,
    created_at timestamptz not null default now(),
    updated_at timestamptz not null default now()
);

-- What became of a slot: a task or workflow, or why there is none.
create table if not exists horsies_schedule_runs (
    schedule_name varchar(255) not null,
    slot_at timestamptz not null,
    outcome varchar(32) not null,
    task_id varchar(36) collate "C",
    workflow_id varchar(36) collate "C",
    reason text,
    created_at timestamptz not null default now(),
    primary key (schedule_name, slot_at)
);
create index if not exists horsies_schedule_runs_created_at_idx on horsies_schedule_runs (created_at);

create trigger horsies_schedule_state_notify_trigger
    after insert or update of next_run_at, paused_at or delete on horsies_schedule_state
    for each statement execute function horsies_notify_schedules();
