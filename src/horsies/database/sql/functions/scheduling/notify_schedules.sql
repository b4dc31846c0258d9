-- horsies_notify_schedules: schedules have changed; the schedulers look when the next one is due.
create or replace function horsies_notify_schedules() returns trigger
language plpgsql
set search_path from current
as $$
begin
    if horsies_may_notify() then
        perform pg_notify('horsies_schedules', '');
    end if;
    return null;
end $$;
