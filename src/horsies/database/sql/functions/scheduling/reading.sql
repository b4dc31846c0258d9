-- horsies_read_schedules: the state of an owner's schedules, or of one, with the definitions of those that were added at run time.
-- Caller: scheduling/finding.py, scheduling/control.py. Reads only.
create or replace function horsies_read_schedules(schedule_owner text, wanted_name text, row_limit integer) returns table (
    name text, next_run_at timestamptz, last_run_at timestamptz, last_task_id text, run_count integer, paused_at timestamptz,
    pause_reason text, definition jsonb, config_hash text)
language plpgsql stable
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        select s.schedule_name::text, s.next_run_at, s.last_run_at, s.last_task_id::text, s.run_count, s.paused_at, s.pause_reason,
            a.definition, s.config_hash::text
        from horsies_schedule_state s left join horsies_schedules a on a.name = s.schedule_name
        where s.owner = schedule_owner and (wanted_name is null or s.schedule_name = wanted_name)
        order by s.schedule_name limit row_limit;
end $$;

-- horsies_schedule_history: what became of the last slots of a schedule, the latest first.
-- Caller: scheduling/control.py. Reads only.
create or replace function horsies_schedule_history(wanted_name text, row_limit integer) returns table (
    slot_at timestamptz, outcome text, task_id text, workflow_id text, reason text, created_at timestamptz, status text)
language plpgsql stable
set search_path from current
as $$
#variable_conflict use_column
begin
    return query
        select r.slot_at, r.outcome::text, r.task_id::text, r.workflow_id::text, r.reason, r.created_at,
            coalesce(t.status, w.status)::text
        from (select * from horsies_schedule_runs i where i.schedule_name = wanted_name order by i.slot_at desc limit row_limit) r
        left join horsies_tasks t on t.id = r.task_id
        left join horsies_workflows w on w.id = r.workflow_id
        order by r.slot_at desc;
end $$;

-- horsies_sent_slots: those of these slots that were sent already.
-- Caller: scheduling/by_hand.py, before a backfill. Reads only.
create or replace function horsies_sent_slots(wanted_name text, slots timestamptz[], run_ids text[]) returns table (
    slot_at timestamptz)
language plpgsql stable
set search_path from current
as $$
begin
    return query
        select i.slot from unnest(slots, run_ids) i(slot, id)
        where exists (select from horsies_schedule_runs r
                      where r.schedule_name = wanted_name and r.slot_at = i.slot and r.outcome = 'sent')
           or exists (select from horsies_tasks t where t.id = i.id)
           or exists (select from horsies_workflows w where w.id = i.id);
end $$;

-- horsies_pruned_until: the latest slot of a schedule that was sent and whose history is gone; null if none is.
-- Caller: scheduling/by_hand.py, before a backfill. Reads only.
create or replace function horsies_pruned_until(wanted_name text) returns timestamptz
language plpgsql stable
set search_path from current
as $$
begin
    return (select h.pruned_until from horsies_schedule_horizons h where h.schedule_name = wanted_name);
end $$;
