-- horsies_expire_tasks: PENDING -> EXPIRED (T10) for rows whose deadline has passed. No attempt row: user code never ran.
-- Caller: horsies_sweep, recovery/manual.py.  Locks: workflows; horsies_tasks, by id, skipping locked rows.
create or replace function horsies_expire_tasks(batch_limit integer) returns integer
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    overdue text[];
    of_workflows text[];
    expired integer;
begin
    select coalesce(array_agg(o.id::text), '{}'), coalesce(array_agg(o.id::text) filter (where o.is_workflow_task), '{}')
    into overdue, of_workflows
    from (select c.id, c.is_workflow_task from horsies_tasks c
          where c.status = 'PENDING' and c.good_until is not null and c.good_until <= now_at
          order by c.good_until limit batch_limit) o;
    if of_workflows <> '{}' then
        perform horsies_lock_workflows_of_tasks(of_workflows);
    end if;
    update horsies_tasks t set status = 'EXPIRED', failed_at = now_at, error_code = 'TASK_EXPIRED', updated_at = now_at,
        result = horsies_error_result('TASK_EXPIRED', 'The deadline good_until passed before the task was claimed',
            json_build_object('task_id', t.id))
    where t.id = any (array(
        select c.id from horsies_tasks c
        where c.id = any (overdue) and c.status = 'PENDING' and c.good_until <= now_at
        order by c.id for update skip locked));
    get diagnostics expired = row_count;
    if of_workflows <> '{}' then
        perform horsies_advance_tasks(of_workflows);
    end if;
    return expired;
end $$;
