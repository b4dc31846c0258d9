-- horsies_may_notify: whether notifications still fit. A full queue (a frozen listener) fails the commit of whoever notifies;
-- half full, we stop: it costs wake-ups, which polling makes up for, and nothing else.
create or replace function horsies_may_notify() returns boolean
language sql stable parallel safe as $$
    select pg_notification_queue_usage() < 0.5
$$;

-- horsies_may_notify_ids: whether one statement may name so many tasks: they may fill an eighth of the queue. Its size can be set since PostgreSQL 17.
create or replace function horsies_may_notify_ids(id_count integer) returns boolean
language sql stable parallel safe as $$
    select id_count * 64.0 < coalesce(current_setting('max_notify_queue_pages', true)::bigint, 1048576) * 1024
$$;
