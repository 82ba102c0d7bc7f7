-- Comes before rw.lua and rw_force.lua: frees the lock from its writer.
local wanted, message = 'write', '1'
