-- horsies_error_text: the text at a path inside the error of a stored TaskResult; null when there is none, or it cannot be read.
-- PostgreSQL text cannot hold NUL, which JSON can: U+FFFD shows where one stood.
create or replace function horsies_error_text(stored text, variadic path text[]) returns text
language plpgsql immutable
as $$
begin
    if strpos(stored, '\u0000') > 0 then  -- an escape only after an even number of backslashes
        stored := regexp_replace(stored, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\ufffd', 'g');
    end if;
    return stored::json -> 'err' #>> path;
exception when data_exception or invalid_text_representation then
    return null;
end $$;

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
    return left(whole, 4000) || format(E'\n… %s characters left out …\n', length(whole) - 16000) || right(whole, 12000);
end $$;
