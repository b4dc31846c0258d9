-- horsies_init_schedules: the state rows of an owner's schedules. Missing ones are made and wait for their first slot. Only if it syncs,
-- as a starting scheduler does, changed ones wait for their next slot, those that had ended and have slots again go on, and so do those
-- whose next slot is out of reach; those that never ran and may run earlier (their start was moved) do so, and those that are neither
-- named nor added at run time are deleted.
-- Callers: scheduling/scheduler.py, scheduling/finding.py.  Locks: horsies_schedule_state, by name.
-- 'new'; 'kept'; 'changed'; 'taken' (another owner has this name).
create or replace function horsies_init_schedules(
    schedule_owner text, names text[], next_runs timestamptz[], hashes text[], syncs boolean
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
    if syncs then
        delete from horsies_schedule_state s
        where s.owner = schedule_owner and not s.schedule_name = any (names)
          and not exists (select from horsies_schedules a where a.name = s.schedule_name);
    end if;
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
        select s.owner, s.config_hash, s.next_run_at, s.run_count into state from horsies_schedule_state s where s.schedule_name = wanted.name for update;
        if state.owner <> schedule_owner then
            return query select wanted.name, 'taken';
        elsif syncs and state.config_hash is distinct from wanted.hash then
            update horsies_schedule_state s set next_run_at = wanted.next_run_at, config_hash = wanted.hash, updated_at = now_at
            where s.schedule_name = wanted.name;
            return query select wanted.name, 'changed';
        else
            if syncs and (horsies_readable(state.next_run_at) is null and wanted.next_run_at is not null
                    or state.run_count = 0 and wanted.next_run_at < state.next_run_at) then
                update horsies_schedule_state s set next_run_at = wanted.next_run_at, updated_at = now_at where s.schedule_name = wanted.name;
            end if;
            return query select wanted.name, 'kept';
        end if;
    end loop;
end $$;

-- horsies_due_schedules: due schedules of an owner, the longest due first, beginning after the one named, with the definitions of those
-- that were added at run time; and the seconds until the next one is due.
-- Caller: scheduling/scheduler.py. Reads only.
create or replace function horsies_due_schedules(
    schedule_owner text, after_run_at timestamptz, after_name text, batch_limit integer
) returns table (names text[], definitions jsonb[], last_run_at timestamptz, next_after double precision, asked_at timestamptz)
language plpgsql stable
set search_path from current
as $$
declare
    now_at timestamptz := horsies_now();
begin
    return query select d.names, d.definitions, d.last_run_at,
        (select extract(epoch from horsies_readable(min(s.next_run_at)) - now_at)::double precision from horsies_schedule_state s
         where s.owner = schedule_owner and s.next_run_at > now_at and s.paused_at is null),
        now_at
    from (
        select coalesce(array_agg(i.schedule_name::text order by i.next_run_at, i.schedule_name), '{}') as names,
            coalesce(array_agg(a.definition order by i.next_run_at, i.schedule_name), '{}') as definitions,
            max(i.next_run_at) as last_run_at
        from (select s.schedule_name, s.next_run_at from horsies_schedule_state s
              where s.owner = schedule_owner and s.paused_at is null and s.next_run_at <= now_at
                and (s.next_run_at, s.schedule_name) > (after_run_at, after_name)
              order by s.next_run_at, s.schedule_name limit batch_limit) i
        left join horsies_schedules a on a.name = i.schedule_name) d;
end $$;

-- horsies_has_missing_schedules: whether one of these schedules has no state row.
-- Caller: scheduling/scheduler.py, now and then: someone may have deleted a row. Reads only.
create or replace function horsies_has_missing_schedules(names text[]) returns boolean
language plpgsql stable
set search_path from current
as $$
begin
    return exists (select from unnest(names) i(name)
                   where not exists (select from horsies_schedule_state s where s.schedule_name = i.name));
end $$;
