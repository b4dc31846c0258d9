-- horsies_without_odd_escapes: JSON text in which U+FFFD stands for what PostgreSQL text cannot hold: NUL and lone surrogates. An
-- escape is one only behind an even number of backslashes.
create or replace function horsies_without_odd_escapes(stored text) returns text
language plpgsql immutable
as $$
begin
    stored := regexp_replace(stored, $re$(?<!\\)((?:\\\\)*)\\u0000$re$, $re$\1\\ufffd$re$, 'g');
    stored := regexp_replace(stored, $re$(?<!\\)((?:\\\\)*)\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F][0-9a-fA-F]{2})$re$, $re$\1\\ufffd$re$, 'g');
    return regexp_replace(stored, $re$(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)((?:\\\\)*)\\u[dD][c-fC-F][0-9a-fA-F]{2}$re$, $re$\1\\ufffd$re$, 'g');
end $$;

-- horsies_json_text: the text at a path of a stored JSON text; null when there is none, or it cannot be read. What users store is
-- read here and in horsies_json_member alone: PostgreSQL raises where a text has NUL (\u0000), a lone surrogate (\ud800) or deep
-- nesting, and what one user has stored must not stop what reads for all.
create or replace function horsies_json_text(stored text, variadic path text[]) returns text
language plpgsql immutable
set search_path from current
as $$
begin
    return stored::json #>> path;
exception when data_exception or invalid_text_representation or statement_too_complex then
    begin
        return horsies_without_odd_escapes(stored)::json #>> path;
    exception when data_exception or invalid_text_representation or statement_too_complex then
        return null;
    end;
end $$;

-- horsies_error_text: the text at a path inside the error of a stored TaskResult; null when there is none, or it cannot be read.
create or replace function horsies_error_text(stored text, variadic path text[]) returns text
language sql immutable
set search_path from current
as $$
    select horsies_json_text(stored, variadic array['err'] || path)
$$;

-- horsies_traceback_of: the traceback in a stored TaskResult, at most about 16,000 characters of it; null when it has none.
-- The start tells who called, the end what went wrong: what is too long loses its middle.
create or replace function horsies_traceback_of(stored text) returns text
language plpgsql immutable
set search_path from current
as $$
declare
    whole text;
begin
    if strpos(stored, '"traceback"') = 0 then
        return null;
    end if;
    whole := horsies_error_text(stored, 'exception', 'traceback');
    if length(whole) <= 16000 then
        return whole;
    end if;
    return left(whole, 4000) || format(E'\n... %s characters left out ...\n', length(whole) - 16000) || right(whole, 12000);
end $$;
