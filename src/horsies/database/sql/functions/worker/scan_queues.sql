-- horsies_scan_queues: finds and locks what a claim may take: queue by queue, by priority, then by age, within all limits.
-- Caller: horsies_claim_tasks, under its planner settings.  Locks: horsies_tasks, skipping locked rows.
-- A queue's marks are where earlier claims of this worker stopped: dead index entries before them are not walked again
-- (decision 0003). They are sorted by priority: [{"priority", "lanes": {"<lane number>": {"enqueued_at", "id"}}}].
-- Returns a row for each queue and priority: the tasks found, their lanes, and by lane how far the scan came (horsies_scan_lane).
create or replace function horsies_scan_queues(
    queues jsonb, lanes jsonb, limits jsonb, now_at timestamptz
) returns table (
    queue_name text, priority integer, task_ids text[], task_lanes integer[],
    scanned_to_ats timestamptz[], scanned_to_ids text[]
)
language plpgsql
as $$
declare
    counts_claims boolean := (limits ->> 'counts_claims')::boolean;
    batch_limit integer := nullif((limits ->> 'batch_limit')::integer, 0);
    lane_count integer := jsonb_array_length(lanes);
    left_in_total integer := 0;
    left_in_batch integer;
    left_in_queue integer;
    left_in_lanes integer[];
    queue jsonb;
    marks jsonb;
    next_mark integer;
    marked_priority integer;
    lane_marks jsonb;
    scan record;
begin
    for l in 1..lane_count loop
        left_in_lanes[l] := (lanes -> l - 1 ->> 'starts')::integer + (lanes -> l - 1 ->> 'claims')::integer;
        left_in_total := left_in_total + left_in_lanes[l];
    end loop;
    left_in_total := least(left_in_total,
        horsies_left_under_cap((limits ->> 'cluster_cap')::integer, null, counts_claims, now_at));

    for q in 1..jsonb_array_length(queues) loop
        exit when left_in_total <= 0;
        queue := queues -> q - 1;
        queue_name := queue ->> 'name';
        left_in_batch := batch_limit;
        left_in_queue := least(left_in_total, left_in_batch,
            horsies_left_under_cap((queue ->> 'cap')::integer, queue_name, counts_claims, now_at));
        marks := queue -> 'marks';
        next_mark := 0;
        priority := null;
        while left_in_queue > 0 loop
            marked_priority := (marks -> next_mark ->> 'priority')::integer;
            priority := horsies_next_priority(queue_name, priority, marked_priority);
            exit when priority is null;
            lane_marks := null;
            if priority = marked_priority then
                lane_marks := marks -> next_mark -> 'lanes';
                next_mark := next_mark + 1;
            end if;

            task_ids := '{}';
            task_lanes := '{}';
            scanned_to_ats := array_fill(null::timestamptz, array[lane_count]);
            scanned_to_ids := array_fill(null::text, array[lane_count]);
            for l in 1..lane_count loop
                continue when left_in_lanes[l] <= 0;
                scan := horsies_scan_lane(queue_name, priority, lanes -> l - 1, lane_marks -> l::text,
                    least(left_in_queue, left_in_lanes[l]), now_at);
                task_ids := task_ids || scan.task_ids;
                task_lanes := task_lanes || array_fill(l, array[cardinality(scan.task_ids)]);
                scanned_to_ats[l] := scan.scanned_to_at;
                scanned_to_ids[l] := scan.scanned_to_id;
            end loop;
            if cardinality(task_ids) > left_in_queue then
                -- Lanes share what is left under a cap: the oldest rows win, whatever their lane. The others stay, so no lane
                -- counts as scanned.
                select o.task_ids, o.task_lanes into task_ids, task_lanes
                from horsies_oldest_tasks(task_ids, task_lanes, left_in_queue) o;
                scanned_to_ats := '{}';
            end if;
            return next;

            for l in 1..lane_count loop
                left_in_lanes[l] := left_in_lanes[l] - cardinality(array_positions(task_lanes, l));
            end loop;
            left_in_queue := left_in_queue - cardinality(task_ids);
            left_in_batch := left_in_batch - cardinality(task_ids);
            left_in_total := left_in_total - cardinality(task_ids);
        end loop;
        exit when left_in_batch = 0;
    end loop;
end $$;
