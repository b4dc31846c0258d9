-- horsies_expire_tasks_v2: PENDING -> EXPIRED (T10) for rows whose deadline has passed, and which they were. No attempt row: user code
-- never ran.
-- Caller: recovery/reaper.py, where hooks want to know; recovery/manual.py.  Locks: workflows; horsies_tasks, by id, skipping locked rows.
create or replace function horsies_expire_tasks_v2(batch_limit integer) returns table (task_id text, task_name text, queue_name text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    overdue text[];
    of_workflows text[];
begin
    select coalesce(array_agg(o.id::text), '{}'), coalesce(array_agg(o.id::text) filter (where o.is_workflow_task), '{}')
    into overdue, of_workflows
    from (select c.id, c.is_workflow_task from horsies_tasks c
          where c.status = 'PENDING' and c.good_until is not null and c.good_until <= now_at
          order by c.good_until limit batch_limit) o;
    if of_workflows <> '{}' then
        perform horsies_lock_workflows_of_tasks(of_workflows);
    end if;
    return query update horsies_tasks t set status = 'EXPIRED', failed_at = now_at, error_code = 'TASK_EXPIRED', updated_at = now_at,
        result = horsies_error_result('TASK_EXPIRED', 'The deadline good_until passed before the task was claimed',
            json_build_object('task_id', t.id))
    where t.id = any (array(
        select c.id from horsies_tasks c
        where c.id = any (overdue) and c.status = 'PENDING' and c.good_until <= now_at
        order by c.id for update skip locked))
    returning t.id::text, t.task_name::text, t.queue_name::text;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
end $$;

-- horsies_expire_tasks: the same, and how many they were.
-- Caller: horsies_sweep.
create or replace function horsies_expire_tasks(batch_limit integer) returns integer
language sql
set search_path from current
as $$
    select count(*)::integer from horsies_expire_tasks_v2(batch_limit);
$$;
