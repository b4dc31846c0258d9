-- horsies_store_event: keeps an event for the nodes that wait for it, now or later; the last payload of a name and key counts.
-- Caller: workflows/sending_events.py, also in the user's own transaction. A trigger wakes the workers.
create or replace function horsies_store_event(event_name text, event_key text, event_payload text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    insert into horsies_events (name, key, payload) values (event_name, event_key, event_payload)
    on conflict (name, key) do update set payload = excluded.payload, is_new = true, sent_at = now();
    return true;
end $$;
