-- What a worker says of itself beyond its children: the release it runs, and per kind of execution how many attempts can run at once and
-- how many do: {"async": {"slots": 100, "busy": 3}}.

alter table horsies_worker_states add column if not exists version varchar(50), add column if not exists slots jsonb;
