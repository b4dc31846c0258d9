-- horsies_verdict: what an error says about repeating the statement that met it: 'retry' (the server, the network or another
-- session), 'row' (a value of one row) or 'bug'. database/verdict.py keeps the same list.
create or replace function horsies_verdict(state text, message text) returns text
language sql immutable parallel safe as $$
    select case
        when state = '0A000' and strpos(message, 'cached plan') > 0
          or state = '54000' and strpos(message, 'NOTIFY') > 0
          or state = 'XX000' and strpos(message, 'cache lookup failed for function') > 0 then 'retry'
        when state in ('25006', '25P03', '25P04') or left(state, 2) in ('08', '40', '53', '55', '57', '58') then 'retry'
        when left(state, 2) in ('21', '22', '23', '54') then 'row'
        else 'bug' end
$$;
