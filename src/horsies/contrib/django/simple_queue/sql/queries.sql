-- Statements of the compatibility app.
-- Each statement can be pasted into psql once its %(name)s parameters are filled in.

-- name: set_raw
select set_config('django_simple_queue.raw', %(value)s, false);

-- name: append
insert into django_simple_queue_output (task_id, attempt, stream, chunk)
select t.id, t.retry_count + 1, %(stream)s, %(chunk)s from horsies_tasks t where t.id = %(task_id)s returning id;

-- name: clear
with gone as (
    delete from django_simple_queue_output o using horsies_tasks t
    where o.task_id = t.id and t.id = %(task_id)s and o.attempt = t.retry_count + 1 returning o.id)
select count(*) from gone;

-- name: replace_log
with gone as (
    delete from django_simple_queue_output o where o.task_id = %(task_id)s and o.stream = 'log')
insert into django_simple_queue_output (task_id, attempt, stream, chunk)
select t.id, t.retry_count + 1, 'log', %(chunk)s from horsies_tasks t where t.id = %(task_id)s and t.status = 'RUNNING' returning id;

-- name: orphan
-- A row that has been running under a pid of this host, and nobody's claim: what only a hand or the import writes.
select t.id, t.worker_pid from horsies_tasks t
where t.status = 'RUNNING' and left(t.task_options, 18) = '{"kind":"callable"' and t.worker_pid is not null
  and t.claimed_by_worker_id is null
order by t.id limit 1000;

-- name: fail
-- RUNNING -> FAILED for a row whose process is gone, with the attempt that it was; a row that has moved on stays as it is.
with held as (
    select t.* from horsies_tasks t where t.id = %(task_id)s and t.status = 'RUNNING' for update
), ended as (
    update horsies_tasks t set status = 'FAILED', failed_at = horsies_now(), updated_at = horsies_now(), error_code = %(code)s,
        failed_reason = %(message)s, result = %(result)s, claimed = false, worker_pid = null
    from held h where t.id = h.id
    returning t.id, t.retry_count, h.started_at, h.worker_pid, h.claimed_by_worker_id
)
insert into horsies_task_attempts (task_id, attempt, outcome, started_at, finished_at, error_code, error_message, failed_reason, worker_id, worker_pid)
select e.id, e.retry_count + 1, 'WORKER_FAILURE', coalesce(e.started_at, horsies_now()), horsies_now(), %(code)s, %(message)s, %(message)s,
    e.claimed_by_worker_id, e.worker_pid
from ended e returning task_id;

-- name: legacy_columns
select c.column_name from information_schema.columns c where c.table_name = %(table)s and c.table_schema = current_schema();

-- name: import_some
-- A batch of rows of the old table that are not here yet; what was in progress is failed or queued again.
-- The columns that the oldest releases lack are read as null through the row's JSON.
with legacy as (
    select l.id::text as id, l.created, l.modified, l.task, l.args, l.status, l.output,
        to_jsonb(l) ->> 'error' as error, to_jsonb(l) ->> 'log' as log
    from django_simple_queue_task_legacy l
    where not exists (select from horsies_tasks t where t.id = l.id::text)
    order by l.modified, l.id limit %(batch)s
), written as (
    insert into django_simple_queue_task (id, created, modified, task, args, status, output, worker_pid, error, log)
    select l.id, l.created, l.modified, l.task, l.args,
        case when l.status <> 1 then l.status when %(in_progress)s = 'requeue' then 0 else 3 end, l.output, null,
        case when l.status = 1 and %(in_progress)s <> 'requeue' then 'Task failed: its worker was stopped before the import' else l.error end, l.log
    from legacy l returning id
)
select count(*) from written;

-- name: count_to_import
select count(*) from django_simple_queue_task_legacy l where not exists (select from horsies_tasks t where t.id = l.id::text);
