-- Asks whether a latch (RCountDownLatch) is open: its count does not exist.
-- KEYS[1] the count
-- Reply   1 open, {-1, ''} closed
return count(KEYS[1]) > 0 and {-1, ''} or 1
