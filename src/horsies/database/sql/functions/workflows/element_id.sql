-- horsies_element_id: the id of one element's node in a fan-out: time-ordered as its parent's, and the same whenever it is made.
create or replace function horsies_element_id(parent_node_id text, element integer) returns text
language sql immutable parallel safe as $$
    select left(parent_node_id, 13) || '-7' || substr(h, 1, 3) || '-8' || substr(h, 4, 3) || '-' || substr(h, 7, 12)
    from md5(parent_node_id || ':' || element) h
$$;
