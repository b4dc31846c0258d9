-- The notifications of tasks: they only wake listeners; polling is the truth.
-- A commit that notifies holds a lock of the whole server until its log is on disk, and every listener pays for every message. So more than ten
-- rows share theirs, and what we write ourselves we tell in a transaction of its own, right after the commit (decision 0015): such a
-- transaction says so by horsies.is_told_later, and the triggers are not called. What others write they tell, in its own transaction.

-- horsies_tell_new: there is work. is_bulk: the ids stand for many, one per queue.
-- Caller: horsies_send_tasks, horsies_notify_task_changes_insert; horsies_send_task does the same itself.
create or replace function horsies_tell_new(task_ids text[], queue_names text[], is_bulk boolean) returns void
language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() then
        perform pg_notify('horsies_task_status', case when is_bulk then '*' else i.id end), pg_notify('task_new', i.id),
            case when octet_length('task_queue_' || i.queue_name) <= 63 then pg_notify('task_queue_' || i.queue_name, i.id) end
        from unnest(task_ids, queue_names) i(id, queue_name);
    end if;
end $$;

-- horsies_tell_changed: these tasks have another status, and those of them have ended.
-- Caller: horsies_end_tasks, horsies_notify_task_status_change_update.
create or replace function horsies_tell_changed(changed_ids text[], ended_ids text[]) returns void
language plpgsql
set search_path from current
as $$
declare
    all_ids text;
    id_limit integer;
begin
    if not horsies_may_notify() then
        return;
    end if;
    if cardinality(changed_ids) <= 10 then
        perform pg_notify('horsies_task_status', i.id) from unnest(changed_ids) i(id);
        perform pg_notify('task_done', i.id) from unnest(ended_ids) i(id);
        return;
    end if;
    perform pg_notify('horsies_task_status', '*');
    if horsies_may_notify_ids(cardinality(ended_ids)) then
        -- PostgreSQL takes payloads of up to 7,999 bytes, and an id has at most 36 characters: of one byte, unless written by hand.
        all_ids := array_to_string(ended_ids, ',');
        id_limit := case when octet_length(all_ids) = char_length(all_ids) then 200 else 50 end;
        for i in 1..cardinality(ended_ids) by id_limit loop
            perform pg_notify('task_done', array_to_string(ended_ids[i : i + id_limit - 1], ','));
        end loop;
    end if;
end $$;

create or replace function horsies_notify_task_changes_insert() returns trigger language plpgsql
set search_path from current
as $$
begin
    if (select count(*) from (select from inserted limit 11) i) <= 10 then
        perform horsies_tell_new(array_agg(i.id::text), array_agg(i.queue_name::text), false) from inserted i where i.status = 'PENDING';
        perform horsies_tell_changed(array_agg(i.id::text), '{}') from inserted i where i.status <> 'PENDING' having count(*) > 0;
    else
        perform pg_notify('horsies_task_status', '*') where horsies_may_notify();
        perform horsies_tell_new(array_agg(q.id), array_agg(q.queue_name::text), true)
        from (select i.queue_name, min(i.id) as id from inserted i where i.status = 'PENDING' group by i.queue_name) q;
    end if;
    return null;
end $$;

create or replace function horsies_notify_task_status_change_update() returns trigger language plpgsql
set search_path from current
set enable_hashjoin = on
set enable_nestloop = off  -- a plan cached for one row would cost n * n for n
as $$
begin
    perform horsies_tell_changed(array_agg(a.id::text),
        coalesce(array_agg(a.id::text) filter (where a.status in ('COMPLETED', 'FAILED', 'CANCELLED', 'EXPIRED')), '{}'))
    from after a join before b on b.id = a.id where b.status <> a.status
    having count(*) > 0;
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
