-- What running tasks report of themselves; tasks that report nothing have no row.

create table if not exists horsies_task_progress (
    task_id varchar(36) collate "C" primary key references horsies_tasks (id) on delete cascade,
    attempt integer not null,
    done double precision not null,
    total double precision,
    note text,
    updated_at timestamptz not null default now()
) with (fillfactor = 50);
