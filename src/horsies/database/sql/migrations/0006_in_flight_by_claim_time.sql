-- Counts under a cap start where the last one stopped, so rows in flight are found by the time of their claim (decision 0003).

drop index if exists horsies_tasks_in_flight_idx;
create index horsies_tasks_in_flight_idx on horsies_tasks (claimed_at) where status in ('CLAIMED', 'RUNNING');
