-- horsies_init_schedules: the state rows of an owner's schedules: new ones wait for their first slot, changed ones for their next,
-- unchanged ones stay as they are; those that are no longer there are deleted.
-- Caller: scheduling/scheduler.py.  Locks: horsies_schedule_state, by name.
-- 'new'; 'kept'; 'changed'; 'taken' (another owner has this name).
create or replace function horsies_init_schedules(
    schedule_owner text, names text[], next_runs timestamptz[], hashes text[], known_names text[]
) returns table (schedule_name text, outcome text)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
declare
    now_at timestamptz := horsies_now();
    wanted record;
    state record;
begin
    delete from horsies_schedule_state s where s.owner = schedule_owner and not s.schedule_name = any (known_names);
    for wanted in
        select * from unnest(names, next_runs, hashes) i(name, next_run_at, hash) order by i.name
    loop
        insert into horsies_schedule_state (schedule_name, owner, next_run_at, run_count, config_hash, updated_at)
        values (wanted.name, schedule_owner, wanted.next_run_at, 0, wanted.hash, now_at)
        on conflict (schedule_name) do nothing;
        if found then
            return query select wanted.name, 'new';
            continue;
        end if;
        select s.owner, s.config_hash into state from horsies_schedule_state s where s.schedule_name = wanted.name for update;
        if state.owner <> schedule_owner then
            return query select wanted.name, 'taken';
        elsif state.config_hash is distinct from wanted.hash then
            update horsies_schedule_state s set next_run_at = wanted.next_run_at, config_hash = wanted.hash, updated_at = now_at
            where s.schedule_name = wanted.name;
            return query select wanted.name, 'changed';
        else
            return query select wanted.name, 'kept';
        end if;
    end loop;
end $$;

-- horsies_lock_schedule: the state of a due schedule, locked for the transaction that fires it; nothing if another scheduler has it,
-- or it is no longer due.
-- Caller: scheduling/scheduler.py.  Locks: the schedule's state row, without waiting.
create or replace function horsies_lock_schedule(name text, schedule_owner text) returns table (
    next_run_at timestamptz, last_task_id text, now_at timestamptz)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        select s.next_run_at, s.last_task_id::text, horsies_now() from horsies_schedule_state s
        where s.schedule_name = name and s.owner = schedule_owner and s.paused_at is null and s.next_run_at <= horsies_now()
        for update skip locked;
end $$;

-- horsies_record_firing: what became of slots, and when the schedule is due again, in the transaction that sends their tasks.
-- Caller: scheduling/scheduler.py.  Locks: the schedule's state row, held already.
create or replace function horsies_record_firing(
    name text, next_at timestamptz, slots timestamptz[], outcomes text[], task_ids text[], workflow_ids text[], reasons text[]
) returns boolean
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    sent text[] := array_remove(task_ids || workflow_ids, null);
begin
    insert into horsies_schedule_runs (schedule_name, slot_at, outcome, task_id, workflow_id, reason, created_at)
    select name, i.slot, i.outcome, i.task_id, i.workflow_id, i.reason, now_at
    from unnest(slots, outcomes, task_ids, workflow_ids, reasons) i(slot, outcome, task_id, workflow_id, reason)
    on conflict do nothing;
    update horsies_schedule_state s set next_run_at = next_at, updated_at = now_at,
        last_run_at = case when sent = '{}' then s.last_run_at else now_at end,
        last_task_id = coalesce(sent[cardinality(sent)], s.last_task_id),
        run_count = s.run_count + cardinality(sent)
    where s.schedule_name = name;
    return found;
end $$;

-- horsies_due_schedules: the names of due schedules of an owner, the longest due first, and the seconds until the next one is.
-- Caller: scheduling/scheduler.py. Reads only.
create or replace function horsies_due_schedules(schedule_owner text, batch_limit integer)
returns table (
    names text[], next_after double precision, asked_at timestamptz, known_count bigint)
language plpgsql stable
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query select
        array(select s.schedule_name::text from horsies_schedule_state s
              where s.next_run_at <= now_at and s.owner = schedule_owner and s.paused_at is null
              order by s.next_run_at limit batch_limit),
        (select extract(epoch from min(s.next_run_at) - now_at)::double precision from horsies_schedule_state s
         where s.next_run_at > now_at and s.owner = schedule_owner and s.paused_at is null),
        now_at,
        (select count(*) from horsies_schedule_state s where s.owner = schedule_owner);
end $$;

-- horsies_open_runs: how many runs of a schedule have not ended, and how many of them have not begun; of its last 100.
-- Caller: scheduling/scheduler.py, for schedules that do not overlap. Reads only.
create or replace function horsies_open_runs(name text) returns table (open_count bigint, waiting_count bigint)
language plpgsql stable
set search_path from current
as $$
begin
    return query
        select count(*) filter (where coalesce(t.status, w.status) in ('PENDING', 'CLAIMED', 'RUNNING', 'PAUSED')),
            count(*) filter (where t.status in ('PENDING', 'CLAIMED'))
        from (select r.task_id, r.workflow_id from horsies_schedule_runs r
              where r.schedule_name = name and r.outcome = 'sent' order by r.slot_at desc limit 100) r
        left join horsies_tasks t on t.id = r.task_id
        left join horsies_workflows w on w.id = r.workflow_id;
end $$;
