-- Reads a count.
-- KEYS[1] the count
-- Reply   {count, 0}
return {count(KEYS[1]), 0}
