-- horsies_return_unheld_tasks: horsies_return_unheld_tasks_v2 as workers of 0.2.0 call it.
create or replace function horsies_return_unheld_tasks(owner_id text, held_ids text[]) returns integer
language plpgsql
set search_path from current
as $$
begin
    return (select u.returned from horsies_return_unheld_tasks_v2(owner_id, held_ids) u);
end $$;
