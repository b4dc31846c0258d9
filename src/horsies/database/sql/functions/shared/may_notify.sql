-- horsies_may_notify: whether notifications still fit. A full queue (a frozen listener) fails the commit of whoever notifies;
-- half full, we stop: it costs wake-ups, which polling makes up for, and nothing else.
create or replace function horsies_may_notify() returns boolean
language sql stable parallel safe as $$
    select pg_notification_queue_usage() < 0.5
$$;
