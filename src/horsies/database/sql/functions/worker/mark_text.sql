-- horsies_mark_text: an instant of a mark as it travels: exact, and in the order of the instants.
-- Caller: functions that set DateStyle and TimeZone, on which this text depends; to_char, which does not, takes six times as long.
-- Rows from before our era, written by hand, all stand at the beginning.
create or replace function horsies_mark_text(instant timestamptz) returns text
language sql stable parallel safe as $$
    select case when instant < '0001-01-02 00:00:00+00' then '-infinity' else instant::text end
$$;
