-- horsies_add_schedule: a schedule that is added at run time; its state waits for its first slot.
-- Caller: scheduling/control.py.  Locks: horsies_schedules, then horsies_schedule_state, one row of each.
-- 'added'; 'exists' (its owner has one of this name, in code or added); 'taken' (another owner has).
create or replace function horsies_add_schedule(
    added_name text, schedule_owner text, new_definition jsonb, next_at timestamptz, hash text
) returns text
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    other text;
begin
    insert into horsies_schedules (name, owner, definition, created_at, updated_at)
    values (added_name, schedule_owner, new_definition, now_at, now_at) on conflict do nothing;
    if found then
        insert into horsies_schedule_state (schedule_name, owner, next_run_at, run_count, config_hash, updated_at)
        values (added_name, schedule_owner, next_at, 0, hash, now_at) on conflict do nothing;
        if found then
            return 'added';
        end if;
        delete from horsies_schedules a where a.name = added_name;
    end if;
    select coalesce(s.owner, a.owner) into other
    from (select added_name as name) n
    left join horsies_schedule_state s on s.schedule_name = n.name left join horsies_schedules a on a.name = n.name;
    return case when other = schedule_owner then 'exists' else 'taken' end;
end $$;

-- horsies_change_schedule: another definition for a schedule that was added at run time. With the same pattern, zone, start and end, its
-- next slot stays.
-- Caller: scheduling/control.py.  Locks: horsies_schedules, then horsies_schedule_state, one row of each.
create or replace function horsies_change_schedule(
    changed_name text, schedule_owner text, new_definition jsonb, next_at timestamptz, hash text
) returns boolean
language plpgsql
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
    old_definition jsonb;
    is_moved boolean;
begin
    select a.definition into old_definition from horsies_schedules a
    where a.name = changed_name and a.owner = schedule_owner for update;
    if not found then
        return false;
    end if;
    is_moved := (old_definition -> 'start_at', old_definition -> 'end_at')
        is distinct from (new_definition -> 'start_at', new_definition -> 'end_at');
    update horsies_schedules a set definition = new_definition, updated_at = now_at where a.name = changed_name;
    insert into horsies_schedule_state as s (schedule_name, owner, next_run_at, run_count, config_hash, updated_at)
    values (changed_name, schedule_owner, next_at, 0, hash, now_at)
    on conflict (schedule_name) do update set updated_at = now_at, config_hash = excluded.config_hash,
        next_run_at = case when s.config_hash = excluded.config_hash and not is_moved then s.next_run_at else excluded.next_run_at end;
    return true;
end $$;

-- horsies_remove_schedule: forget a schedule that was added at run time. Its history stays.
-- Caller: scheduling/control.py.  Locks: horsies_schedules, then horsies_schedule_state, one row of each.
create or replace function horsies_remove_schedule(removed_name text, schedule_owner text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    delete from horsies_schedules a where a.name = removed_name and a.owner = schedule_owner;
    if not found then
        return false;
    end if;
    delete from horsies_schedule_state s where s.schedule_name = removed_name and s.owner = schedule_owner;
    return true;
end $$;

-- horsies_pause_schedule: no slot is sent until it is resumed. Pausing again changes the reason.
-- Caller: scheduling/control.py.  Locks: the schedule's state row.
create or replace function horsies_pause_schedule(paused_name text, schedule_owner text, reason text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    update horsies_schedule_state s set paused_at = coalesce(s.paused_at, horsies_now()), pause_reason = reason, updated_at = horsies_now()
    where s.schedule_name = paused_name and s.owner = schedule_owner;
    return found;
end $$;

-- horsies_resume_schedule: go on with the slot given. False if it is not paused.
-- Caller: scheduling/control.py.  Locks: the schedule's state row.
create or replace function horsies_resume_schedule(paused_name text, schedule_owner text, next_at timestamptz) returns boolean
language plpgsql
set search_path from current
as $$
begin
    update horsies_schedule_state s set paused_at = null, pause_reason = null, next_run_at = next_at, updated_at = horsies_now()
    where s.schedule_name = paused_name and s.owner = schedule_owner and s.paused_at is not null;
    return found;
end $$;
