-- Every failed attempt keeps its own traceback: the result of a task holds only that of the last one.

alter table horsies_task_attempts add column if not exists traceback text;

-- Ids of senders tell when they were made. Those of schedules, which are made of a name and a slot, and those of other hands do not: this
-- index gives them the place in lists that their time of birth deserves. horsies_find_tasks has the same expression.
-- A large table gets it from `horsies migrate`, which holds nobody up meanwhile.
do $$
begin
    if pg_relation_size('horsies_tasks') < 32 * 1024 * 1024 then
        create index if not exists horsies_tasks_other_ids_idx on horsies_tasks ((overlay(lpad(to_hex(case
        when created_at > '1970-01-01 00:00:00+00' and created_at < '9999-01-01 00:00:00+00'
        then (extract(epoch from created_at at time zone 'UTC') * 1000)::bigint else 0 end), 12, '0') placing '-' from 9 for 0) || '-' || id))
            where id >= '02' or substr(id, 15, 1) <> '7';
    end if;
end $$;
