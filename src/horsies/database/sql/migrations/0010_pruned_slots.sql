-- Up to which slot the history of a schedule is no longer complete: a backfill must not send again what was sent and forgotten.

create table if not exists horsies_schedule_horizons (
    schedule_name varchar(255) primary key,
    pruned_until timestamptz not null
);
