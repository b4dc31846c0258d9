-- horsies_end_backend: ends a session of ours whose client has hung up; true when it is gone.
-- Caller: worker/service_connection.py, before it judges what a statement without an answer has done. It asks again until true.
create or replace function horsies_end_backend(lost_pid integer, session_name text) returns boolean
language plpgsql
set search_path from current
as $$
begin
    perform pg_terminate_backend(a.pid) from pg_stat_activity a
    where a.pid = lost_pid and a.application_name = session_name and a.usename = current_user;
    return not found;
end $$;
