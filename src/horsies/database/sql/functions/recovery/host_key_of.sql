-- horsies_host_key_of: where a worker lives or lived, by its last snapshot; null when it has left none.
-- Caller: horsies_lost_runs, horsies_running_tasks_of_worker.
create or replace function horsies_host_key_of(of_worker text) returns text
language plpgsql stable
set search_path from current
as $$
begin
    return (select s.host_key from horsies_worker_states s where s.worker_id = of_worker order by s.snapshot_at desc limit 1);
end $$;
