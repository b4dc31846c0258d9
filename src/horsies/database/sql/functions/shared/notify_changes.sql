-- The notification triggers: they only wake listeners; polling is the truth.
-- Statement level with transition tables: one call per statement, the channels and payloads of a row-level trigger.

create or replace function horsies_notify_task_changes_insert() returns trigger language plpgsql
set search_path from current
as $$
begin
    if not horsies_may_notify() then
        return null;
    end if;
    perform pg_notify('horsies_task_status', i.id),
        case when i.status = 'PENDING' then pg_notify('task_new', i.id) end,
        case when i.status = 'PENDING' and octet_length('task_queue_' || i.queue_name) <= 63
            then pg_notify('task_queue_' || i.queue_name, i.id) end
    from inserted i;
    return null;
end $$;

create or replace function horsies_notify_task_status_change_update() returns trigger language plpgsql
set search_path from current
set enable_hashjoin = on
set enable_nestloop = off  -- a plan cached for one row would cost n * n for n
as $$
begin
    if not horsies_may_notify() then
        return null;
    end if;
    perform pg_notify('horsies_task_status', a.id),
        case when a.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED') then pg_notify('task_done', a.id) end
    from after a join before b on b.id = a.id where b.status <> a.status;
    return null;
end $$;

create or replace function horsies_notify_worker_state_change() returns trigger language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() then
        perform pg_notify('horsies_worker_state', new.worker_id);
    end if;
    return null;
end $$;

create or replace function horsies_notify_workflow_changes() returns trigger language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() and new.status <> old.status and new.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'PAUSED') then
        perform pg_notify('workflow_done', new.id);
    end if;
    return null;
end $$;

create or replace function horsies_notify_workflow_status_change() returns trigger language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() and (tg_op = 'INSERT' or new.status <> old.status) then
        perform pg_notify('horsies_workflow_status', new.id);
    end if;
    return null;
end $$;
