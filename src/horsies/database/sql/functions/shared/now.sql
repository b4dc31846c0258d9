-- horsies_now: the only clock that decides anything. A test sets `horsies.now` for its connection.
create or replace function horsies_now() returns timestamptz
language sql stable parallel safe as $$
    select coalesce(nullif(current_setting('horsies.now', true), '')::timestamptz, clock_timestamp())
$$;

-- horsies_claim_text: `claimed_at` as the fence travels: exact and free of session settings.
create or replace function horsies_claim_text(instant timestamptz) returns text
language sql stable parallel safe as $$
    select to_char(instant at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00'
$$;
