-- horsies_mark_text: an instant of a mark as it travels: exact, in the order of the instants, and free of session settings.
-- Rows from before our era, written by hand, all stand at the beginning.
create or replace function horsies_mark_text(instant timestamptz) returns text
language sql stable parallel safe as $$
    select case when instant < '0001-01-02 00:00:00+00' then '-infinity'
        else to_char(instant at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' end
$$;
