
-- Comes before the scripts that distinguish a lock from something else.
--
-- holds reports whether a field is a holder: "<UUID>:<number>". Anything else is not a lock.
local function holds(field)
  return string.find(field, '^' .. string.rep('%x', 8) .. string.rep('%-' .. string.rep('%x', 4), 3) .. '%-' .. string.rep('%x', 12) .. ':%-?%d+$')
end
