-- Every failed attempt keeps its own traceback: the result of a task holds only that of the last one.

alter table horsies_task_attempts add column if not exists traceback text;

-- All places for tasks, so that utilisation can be told: `processes` are the children only.
alter table horsies_worker_states add column if not exists slots integer;
