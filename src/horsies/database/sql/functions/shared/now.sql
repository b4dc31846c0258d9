-- horsies_now: the only clock that decides anything. A test sets `horsies.now` for its connection.
create or replace function horsies_now() returns timestamptz
language sql stable parallel safe as $$
    select coalesce(nullif(current_setting('horsies.now', true), '')::timestamptz, clock_timestamp())
$$;

-- horsies_claim_text: `claimed_at` as the fence travels: exact and free of session settings.
create or replace function horsies_claim_text(instant timestamptz) returns text
language sql stable parallel safe as $$
    select case when isfinite(instant) then to_char(instant at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00'
        || case when instant < '0001-01-01 00:00:00+00' then ' BC' else '' end
        else instant::text end
$$;
