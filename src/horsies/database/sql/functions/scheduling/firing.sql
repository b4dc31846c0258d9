-- horsies_lock_schedule: the state of a due schedule, and its definition if it was added at run time, locked for the transaction that
-- fires it; nothing if another scheduler has it, or it is no longer due.
-- Caller: scheduling/scheduler.py.  Locks: the schedule's advisory key, then its state row, without waiting.
-- A scheduler that is stopped while it holds them loses them after 10 s: the server ends its session.
create or replace function horsies_lock_schedule(name text, schedule_owner text) returns table (
    next_run_at timestamptz, definition jsonb, now_at timestamptz)
language plpgsql
set search_path from current
as $$
#variable_conflict use_column
begin
    perform set_config('idle_in_transaction_session_timeout', '10s', true);
    if not pg_try_advisory_xact_lock(horsies_lock_key('schedule:' || name)) then
        return;
    end if;
    return query
        select s.next_run_at, (select a.definition from horsies_schedules a where a.name = s.schedule_name), horsies_now()
        from horsies_schedule_state s
        where s.schedule_name = name and s.owner = schedule_owner and s.paused_at is null and s.next_run_at <= horsies_now()
        for update skip locked;
end $$;

-- horsies_record_firing: what became of slots, and when the schedule is due again, in the transaction that sends their tasks.
-- Callers: scheduling/scheduler.py, scheduling/by_hand.py (keeps_next: a run by hand leaves the next slot alone).
-- Locks: the schedule's state row, held already by a scheduler.
-- A slot that was sent stays sent, whatever is said of it later.
create or replace function horsies_record_firing(
    name text, next_at timestamptz, keeps_next boolean, slots timestamptz[], outcomes text[], task_ids text[],
    workflow_ids text[], reasons text[]
) returns boolean
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    sent text[] := array_remove(task_ids || workflow_ids, null);
begin
    -- The schedulers need no wake-up from what they do themselves.
    perform set_config('horsies.is_firing', 'on', true);
    insert into horsies_schedule_runs as r (schedule_name, slot_at, outcome, task_id, workflow_id, reason, created_at)
    select name, i.slot, i.outcome, i.task_id, i.workflow_id, i.reason, now_at
    from unnest(slots, outcomes, task_ids, workflow_ids, reasons) i(slot, outcome, task_id, workflow_id, reason)
    on conflict (schedule_name, slot_at) do update set outcome = excluded.outcome, task_id = excluded.task_id,
        workflow_id = excluded.workflow_id, reason = excluded.reason, created_at = excluded.created_at
    where r.outcome <> 'sent';
    update horsies_schedule_state s set next_run_at = case when keeps_next then s.next_run_at else next_at end, updated_at = now_at,
        last_run_at = case when sent = '{}' then s.last_run_at else now_at end,
        last_task_id = coalesce(sent[cardinality(sent)], s.last_task_id),
        run_count = s.run_count + cardinality(sent)
    where s.schedule_name = name;
    return found;
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
