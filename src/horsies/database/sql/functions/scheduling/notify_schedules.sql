-- horsies_notify_schedules: schedules have changed; the schedulers look when the next one is due. The payload says 'deleted' when state
-- was deleted: they look whether one of theirs is missing.
create or replace function horsies_notify_schedules() returns trigger
language plpgsql
set search_path from current
as $$
begin
    if coalesce(current_setting('horsies.is_firing', true), '') <> 'on' and horsies_may_notify() then
        perform pg_notify('horsies_schedules', case when tg_op = 'DELETE' then 'deleted' else '' end);
    end if;
    return null;
end $$;
