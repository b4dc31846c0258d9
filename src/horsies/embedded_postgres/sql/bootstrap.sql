-- Runs once in a new cluster. The role is no superuser, so that embedded runs do not hide missing privileges.
create role horsies login;

create database horsies owner horsies;

