-- Comes before rw.lua and rw_force.lua: frees the lock from its readers.
local wanted, message = 'read', '0'
