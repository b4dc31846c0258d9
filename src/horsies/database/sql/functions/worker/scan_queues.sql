-- horsies_scan_queues: finds and locks what a claim may take: queue by queue, by priority, then by age, within all limits.
-- Caller: horsies_claim_tasks_v2, under its planner settings.  Locks: horsies_tasks, skipping locked rows.
-- A queue's marks are where earlier claims of this worker stopped: dead index entries before them are not walked again
-- (decision 0003). They are sorted by priority: [{"priority", "lanes": {"<lane number>": {"enqueued_at", "id"}}}].
-- Returns the tasks in claim order, those of one priority lane by lane, with their lanes and their places in these; and for each
-- queue, priority and lane that had fewer rows than it might give, the position to which it was scanned, as horsies_scan_lane
-- says. is_cut_short: it stopped at the byte limit.
-- counts: what horsies_left_under_cap remembers, {"cluster": ..., "queues": {"<name>": ...}}; comes with the limits, as text.
create or replace function horsies_scan_queues(
    queues jsonb, lanes jsonb, limits jsonb, now_at timestamptz,
    out task_ids text[], out task_lanes integer[], out task_places integer[],
    out position_queues text[], out position_priorities integer[], out position_lanes integer[],
    out scanned_to_ats timestamptz[], out scanned_to_ids text[], out is_cut_short boolean,
    out counts jsonb
)
language plpgsql
as $$
declare
    counts_claims boolean := (limits ->> 'counts_claims')::boolean;
    left_in_total integer := 0;
    left_in_bytes bigint := (limits ->> 'byte_limit')::bigint;
    left_in_batch integer;
    left_in_queue integer;
    left_in_lanes integer[];
    taken_in_lanes integer[];
    queue jsonb;
    queue_name text;
    marks jsonb;
    next_mark integer;
    marked_priority integer;
    at_priority integer;
    lane_marks jsonb;
    scan record;
    count record;
    found_ids text[];
    found_in_lanes integer[];
    found_bytes bigint;
    position_count integer;
begin
    task_ids := '{}';
    task_lanes := '{}';
    task_places := '{}';
    position_queues := '{}';
    position_priorities := '{}';
    position_lanes := '{}';
    scanned_to_ats := '{}';
    scanned_to_ids := '{}';
    is_cut_short := false;
    counts := coalesce((limits ->> 'counts')::jsonb, '{"queues": {}}');
    for l in 1..jsonb_array_length(lanes) loop
        left_in_lanes[l] := (lanes -> l - 1 ->> 'starts')::integer + (lanes -> l - 1 ->> 'claims')::integer;
        left_in_total := left_in_total + left_in_lanes[l];
        taken_in_lanes[l] := 0;
    end loop;
    if limits ->> 'cluster_cap' is not null then
        count := horsies_left_under_cap((limits ->> 'cluster_cap')::integer, null, counts_claims, now_at, counts -> 'cluster');
        left_in_total := least(left_in_total, count.left_under_cap);
        counts := jsonb_set(counts, '{cluster}', count.memory);
    end if;

    for q in 1..jsonb_array_length(queues) loop
        exit when left_in_total <= 0 or is_cut_short;
        queue := queues -> q - 1;
        queue_name := queue ->> 'name';
        left_in_batch := nullif((limits ->> 'batch_limit')::integer, 0);
        left_in_queue := least(left_in_total, left_in_batch);
        if queue ->> 'cap' is not null then
            count := horsies_left_under_cap((queue ->> 'cap')::integer, queue_name, counts_claims, now_at,
                counts -> 'queues' -> queue_name);
            left_in_queue := least(left_in_queue, count.left_under_cap);
            counts := jsonb_set(counts, array['queues', queue_name], count.memory);
        end if;
        marks := queue -> 'marks';
        next_mark := 0;
        at_priority := null;
        while left_in_queue > 0 and not is_cut_short loop
            marked_priority := (marks -> next_mark ->> 'priority')::integer;
            at_priority := horsies_next_priority(queue_name, at_priority, marked_priority);
            exit when at_priority is null;
            lane_marks := null;
            if at_priority = marked_priority then
                lane_marks := marks -> next_mark -> 'lanes';
                next_mark := next_mark + 1;
            end if;

            found_ids := '{}';
            found_in_lanes := array_fill(0, array[cardinality(left_in_lanes)]);
            found_bytes := 0;
            position_count := cardinality(position_lanes);
            for l in 1..cardinality(left_in_lanes) loop
                continue when left_in_lanes[l] <= 0;
                scan := horsies_scan_lane(queue_name, at_priority, lanes -> l - 1, lane_marks -> l::text,
                    least(left_in_queue, left_in_lanes[l]), now_at);
                found_ids := found_ids || scan.task_ids;
                found_bytes := found_bytes + scan.byte_count;
                found_in_lanes[l] := cardinality(scan.task_ids);
                if scan.scanned_to_at is not null then
                    position_queues := position_queues || queue_name;
                    position_priorities := position_priorities || at_priority;
                    position_lanes := position_lanes || l;
                    scanned_to_ats := scanned_to_ats || scan.scanned_to_at;
                    scanned_to_ids := scanned_to_ids || scan.scanned_to_id;
                end if;
            end loop;
            continue when found_ids = '{}';
            if cardinality(found_ids) > left_in_queue or found_bytes >= left_in_bytes then
                -- Lanes share what is left under a cap, or of the bytes: the oldest rows win, whatever their lane. Others stay
                -- behind, so no lane of this priority counts as scanned.
                select o.task_ids, o.in_lanes, o.byte_count into found_ids, found_in_lanes, found_bytes
                from horsies_oldest_tasks(found_ids, found_in_lanes, left_in_queue, left_in_bytes) o;
                is_cut_short := coalesce(found_bytes >= left_in_bytes, false);
                position_queues := position_queues[:position_count];
                position_priorities := position_priorities[:position_count];
                position_lanes := position_lanes[:position_count];
                scanned_to_ats := scanned_to_ats[:position_count];
                scanned_to_ids := scanned_to_ids[:position_count];
            end if;

            task_ids := task_ids || found_ids;
            left_in_bytes := left_in_bytes - found_bytes;
            left_in_total := left_in_total - cardinality(found_ids);
            left_in_batch := left_in_batch - cardinality(found_ids);
            left_in_queue := left_in_queue - cardinality(found_ids);
            for l in 1..cardinality(left_in_lanes) loop
                continue when found_in_lanes[l] = 0;
                task_lanes := task_lanes || array_fill(l, array[found_in_lanes[l]]);
                task_places := task_places || array(select generate_series(taken_in_lanes[l] + 1, taken_in_lanes[l] + found_in_lanes[l]));
                taken_in_lanes[l] := taken_in_lanes[l] + found_in_lanes[l];
                left_in_lanes[l] := left_in_lanes[l] - found_in_lanes[l];
            end loop;
        end loop;
        exit when left_in_batch = 0;
    end loop;
end $$;
