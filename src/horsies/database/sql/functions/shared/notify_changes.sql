-- The notification triggers: they only wake listeners; polling is the truth.
-- Statement level with transition tables: one call per statement. Up to ten rows have the channels and payloads of a row-level
-- trigger; more rows share theirs, since a commit that notifies holds a lock of the whole server and every listener pays for every message.

create or replace function horsies_notify_task_changes_insert() returns trigger language plpgsql
set search_path from current
as $$
begin
    if not horsies_may_notify() then
        return null;
    end if;
    if (select count(*) from (select from inserted limit 11) i) <= 10 then
        perform pg_notify('horsies_task_status', i.id),
            case when i.status = 'PENDING' then pg_notify('task_new', i.id) end,
            case when i.status = 'PENDING' and octet_length('task_queue_' || i.queue_name) <= 63
                then pg_notify('task_queue_' || i.queue_name, i.id) end
        from inserted i;
    else
        perform pg_notify('horsies_task_status', '*');
        perform pg_notify('task_new', q.id),
            case when octet_length('task_queue_' || q.queue_name) <= 63 then pg_notify('task_queue_' || q.queue_name, q.id) end
        from (select i.queue_name, min(i.id) as id from inserted i where i.status = 'PENDING' group by i.queue_name) q;
    end if;
    return null;
end $$;

create or replace function horsies_notify_task_status_change_update() returns trigger language plpgsql
set search_path from current
set enable_hashjoin = on
set enable_nestloop = off  -- a plan cached for one row would cost n * n for n
as $$
declare
    changed_count integer;
    ended_ids text[];
begin
    if not horsies_may_notify() then
        return null;
    end if;
    if (select count(*) from (select from after limit 11) a) <= 10 then
        perform pg_notify('horsies_task_status', a.id),
            case when a.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED') then pg_notify('task_done', a.id) end
        from after a join before b on b.id = a.id where b.status <> a.status;
        return null;
    end if;
    select count(*), coalesce(array_agg(a.id) filter (where a.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')), '{}')
    into changed_count, ended_ids
    from after a join before b on b.id = a.id where b.status <> a.status;
    if changed_count > 0 then
        perform pg_notify('horsies_task_status', '*');
    end if;
    if horsies_may_notify_ids(cardinality(ended_ids)) then
        -- PostgreSQL takes payloads of up to 7,999 bytes; the id that passes a multiple of 7,800 belongs to the next one.
        perform pg_notify('task_done', string_agg(c.id, ','))
        from (select e.id, sum(octet_length(e.id) + 1) over (rows unbounded preceding) / 7800 as payload
              from unnest(ended_ids) e(id)) c
        group by c.payload;
    end if;
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
