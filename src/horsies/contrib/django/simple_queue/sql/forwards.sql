-- The table of django-simple-queue as a view of the engine's tasks, which its models read and write.
-- Applied by migration 0003. Names begin with django_simple_queue_, so that an upgrade of the engine's functions leaves them alone.

alter table django_simple_queue_task rename to django_simple_queue_task_legacy;

-- What a task yields or prints while it runs: appended, never rewritten.
create table django_simple_queue_output (
    id bigserial primary key,
    task_id varchar(36) collate "C" not null references horsies_tasks (id) on delete cascade,
    attempt integer not null,
    stream varchar(10) not null check (stream in ('output', 'log')),
    chunk text not null,
    created_at timestamptz not null default clock_timestamp()
);
create index django_simple_queue_output_task_idx on django_simple_queue_output (task_id, attempt, stream, id);

create function django_simple_queue_status(status text) returns integer language sql immutable parallel safe as $$
    select case status when 'PENDING' then 0 when 'CLAIMED' then 1 when 'RUNNING' then 1 when 'COMPLETED' then 2
        when 'CANCELLED' then 4 else 3 end
$$;

create index django_simple_queue_task_status_idx on horsies_tasks (django_simple_queue_status(status), updated_at)
    where left(task_options, 18) = '{"kind":"callable"';

-- The returned value as text: a text as it is, null as null, anything else as JSON. A result that is not JSON shows as none.
create function django_simple_queue_value(result text) returns text language plpgsql immutable parallel safe as $$
begin
    return result::json ->> 'ok';
exception when others then
    return null;
end $$;

-- Why a run failed, in the words of django-simple-queue.
create function django_simple_queue_error(result text, error_code text, error_message text) returns text
language plpgsql immutable parallel safe as $$
declare
    data json := result::json -> 'err' -> 'data';
begin
    return case
        when error_code = 'TASK_TIMEOUT' then format('Task timed out after %s seconds', round((data ->> 'timeout_ms')::numeric / 1000, 3)::real)
        when error_code = 'WORKER_CRASHED' and data ->> 'worker_pid' is not null then
            format('Task failed: worker process (PID %s) no longer running', data ->> 'worker_pid')
        when error_code = 'WORKER_CRASHED' and coalesce(data ->> 'exit_code', data ->> 'signal') is not null then
            format('Worker subprocess exited with code %s', coalesce(data ->> 'exit_code', '-' || (data ->> 'signal')))
        else error_message end;
exception when others then
    return error_message;
end $$;

create view django_simple_queue_task as
select t.id, t.created_at as created,
    greatest(t.updated_at, (select max(o.created_at) from django_simple_queue_output o
        where o.task_id = t.id and o.attempt = t.retry_count + 1 and o.stream = 'output')) as modified,
    t.task_name as task, t.kwargs as args, django_simple_queue_status(t.status) as status,
    coalesce((select string_agg(o.chunk, '' order by o.id) from django_simple_queue_output o
            where o.task_id = t.id and o.attempt = t.retry_count + 1 and o.stream = 'output'),
        django_simple_queue_value(t.result),
        case when t.status = 'FAILED' and t.error_code = 'UNHANDLED_EXCEPTION' then '' end) as output,
    case when t.status in ('CLAIMED', 'RUNNING') then t.worker_pid end as worker_pid,
    case when t.status in ('FAILED', 'EXPIRED') then (
        select django_simple_queue_error(t.result, coalesce(a.error_code, t.error_code), coalesce(a.error_message, t.failed_reason))
        from (values (1)) one(n) left join horsies_task_attempts a on a.task_id = t.id and a.attempt = t.retry_count + 1) end as error,
    coalesce((select l.log from horsies_task_logs l where l.task_id = t.id and l.attempt = t.retry_count + 1),
        (select string_agg(o.chunk, '' order by o.id) from django_simple_queue_output o
            where o.task_id = t.id and o.attempt = t.retry_count + 1 and o.stream = 'log')) as log
from horsies_tasks t
where left(t.task_options, 18) = '{"kind":"callable"';

-- Writes of a row as it is, for tests and the import; see simple_queue/statements.py.
create function django_simple_queue_is_raw() returns boolean language sql stable as $$
    select coalesce(current_setting('django_simple_queue.raw', true), '') = 'on'
$$;

create function django_simple_queue_write_raw(task django_simple_queue_task) returns void
language plpgsql set search_path from current as $$
#variable_conflict use_column
declare
    new_status text := (array['PENDING', 'RUNNING', 'COMPLETED', 'FAILED', 'CANCELLED'])[task.status + 1];
    ended_at timestamptz := case when task.status >= 2 then task.modified end;
begin
    insert into horsies_tasks as t (id, task_name, queue_name, priority, kwargs, status, sent_at, enqueued_at, created_at, updated_at,
        started_at, completed_at, failed_at, result, error_code, failed_reason, worker_pid, task_options, enqueue_sha, claimed_at)
    values (task.id, task.task, 'default', 100, task.args, new_status, task.created, task.created, task.created, task.modified,
        case when task.status between 1 and 3 then task.modified end, case when task.status = 2 then ended_at end,
        case when task.status in (3, 4) then ended_at end,
        case task.status
            when 2 then json_build_object('__task_result__', true, 'ok', task.output, 'err', null)::text
            when 3 then json_build_object('__task_result__', true, 'ok', null, 'err', json_build_object('__task_error__', true,
                'error_code', 'UNHANDLED_EXCEPTION', 'message', task.error))::text end,
        case when task.status = 3 then 'UNHANDLED_EXCEPTION' end, null, task.worker_pid,
        '{"kind":"callable","retry_policy":null,"good_until":null}', 'by simple_queue', case when task.status = 1 then task.modified end)
    on conflict (id) do update set status = excluded.status, kwargs = excluded.kwargs, task_name = excluded.task_name,
        started_at = excluded.started_at, completed_at = excluded.completed_at, failed_at = excluded.failed_at,
        result = excluded.result, error_code = excluded.error_code, worker_pid = excluded.worker_pid,
        claimed_at = excluded.claimed_at, updated_at = excluded.updated_at;
    delete from django_simple_queue_output o where o.task_id = task.id;
    delete from horsies_task_logs l where l.task_id = task.id;
    delete from horsies_task_attempts a where a.task_id = task.id;
    if task.status <> 2 and task.output <> '' then
        insert into django_simple_queue_output (task_id, attempt, stream, chunk, created_at)
        select task.id, t.retry_count + 1, 'output', task.output, task.modified from horsies_tasks t where t.id = task.id;
    end if;
    if task.status in (2, 3) then
        insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, error_code, error_message)
        select task.id, t.retry_count + 1, new_status, ended_at, ended_at, t.error_code, task.error from horsies_tasks t where t.id = task.id;
    end if;
    if task.log is not null then
        insert into horsies_task_logs (task_id, attempt, log) select task.id, t.retry_count + 1, task.log from horsies_tasks t where t.id = task.id;
    end if;
end $$;

create function django_simple_queue_write() returns trigger language plpgsql set search_path from current as $$
declare
    outcome text;
begin
    if tg_op = 'DELETE' then
        delete from horsies_tasks t where t.id = old.id;
        return old;
    end if;
    new.created := coalesce(new.created, clock_timestamp());
    new.modified := coalesce(new.modified, clock_timestamp());
    if django_simple_queue_is_raw() then
        perform django_simple_queue_write_raw(new);
        return new;
    end if;
    if tg_op = 'INSERT' then
        if new.status <> 0 then
            raise integrity_constraint_violation using message = format('task %s must be created as queued', new.id);
        end if;
        insert into horsies_tasks (id, task_name, queue_name, priority, kwargs, sent_at, enqueued_at, created_at, updated_at, task_options, enqueue_sha)
        values (new.id, new.task, 'default', 100, new.args, new.created, horsies_now(), new.created, new.modified,
            '{"kind":"callable","retry_policy":null,"good_until":null}', 'by simple_queue');
    elsif new.status = old.status then
        if new.status = 0 and (new.task, new.args) is distinct from (old.task, old.args) then
            update horsies_tasks t set task_name = new.task, kwargs = new.args, updated_at = clock_timestamp()
            where t.id = old.id and t.status = 'PENDING';
        end if;
    elsif new.status = 0 then
        if old.status = 1 then
            raise integrity_constraint_violation using message = format('task %s is running; cancel it first', old.id);
        end if;
        select r.outcome into outcome from horsies_requeue_tasks(array[old.id::text], true) r;
        if outcome is distinct from 'requeued' then
            raise integrity_constraint_violation using message = format('task %s cannot be queued again', old.id);
        end if;
        delete from django_simple_queue_output o where o.task_id = old.id;
    elsif new.status = 4 then
        perform horsies_request_cancel(array[old.id::text]);
    else
        raise integrity_constraint_violation using
            message = format('task %s: only a worker sets this status; write 0 to queue it again, 4 to cancel it', old.id);
    end if;
    return new;
end $$;

create trigger django_simple_queue_write instead of insert or update or delete on django_simple_queue_task
    for each row execute function django_simple_queue_write();
