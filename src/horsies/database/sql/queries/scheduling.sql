-- The time that decides which schedules are due.

-- name: current_time
select horsies_now();
