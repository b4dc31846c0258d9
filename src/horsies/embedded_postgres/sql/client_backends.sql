-- Sessions of clients other than this one: people who connect by URL alone hold no lock that we could see.
select count(*) from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid();
