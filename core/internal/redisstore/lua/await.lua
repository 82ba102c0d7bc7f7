-- Asks whether a latch (RCountDownLatch) is open: its count is not there.
-- KEYS[1] the count
-- Reply   1 it is, {-1, ''} it is not
return count(KEYS[1]) > 0 and {-1, ''} or 1
