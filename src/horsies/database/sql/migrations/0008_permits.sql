-- What a worker has taken ahead of its turn bears a number, and a permit says up to which number it may begin (decision 0011).

alter table horsies_tasks add column if not exists ahead_number bigint;

-- Newer permits are new rows: a row that is updated for each batch would collect versions beside an old snapshot (decision 0003).
create table if not exists horsies_worker_permits (
    worker_id varchar(255) collate "C" not null,
    granted_by varchar(20) collate "C" not null,
    grant_number bigint not null,
    permitted bigint[] not null,
    granted_at timestamptz not null default now(),
    primary key (worker_id, granted_by, grant_number)
);
