-- horsies_sign_of_life: an instant at which a row showed life; null for one that cannot have been yet, written by hand.
-- A year ahead, not a moment: the server's clock may be set back while tasks run.
create or replace function horsies_sign_of_life(instant timestamptz, now_at timestamptz) returns timestamptz
language sql stable parallel safe as $$
    select case when instant < now_at + interval '1 year' then instant end
$$;
