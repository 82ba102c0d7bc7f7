package interop;

import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** The repeated work of a caller of a load, by kind. load_turns_test.go has the same in Go. */
final class Turns {
    private static final int WRITES = 8; // with readers and writers, every eighth turn writes

    private final Clients clients;

    Turns(Clients clients) {
        this.clients = clients;
    }

    /** A turn on a key. */
    interface Turn {
        void acquire() throws Exception;

        void release() throws Exception;
    }

    /** Returns the turns of a caller, one for each key. */
    List<Turn> of(Request r, int caller) throws Exception {
        RedissonClient[] servers = Stream.of(r.list("client")).map(clients::get).toArray(RedissonClient[]::new);
        String key = r.text("key");
        Turn[] turns = new Turn[r.number("keys")];
        for (int i = 0; i < turns.length; i++) {
            turns[i] = make(r, servers, key + ":" + i, caller);
        }
        return List.of(turns);
    }

    private static Turn make(Request r, RedissonClient[] servers, String key, int caller) {
        RedissonClient client = servers[0];
        return switch (r.text("kind")) {
            case "reentrant" -> lock(client.getLock(key));
            case "fenced" -> lock(client.getFencedLock(key));
            case "spin" -> lock(client.getSpinLock(key));
            case "fair" -> lock(client.getFairLock(key));
            case "read" -> lock(client.getReadWriteLock(key).readLock());
            case "write" -> lock(client.getReadWriteLock(key).writeLock());
            case "read beside write" -> new ReadWrite(
                    client.getReadWriteLock(key).readLock(), client.getReadWriteLock(key).writeLock(), caller);
            case "multi" -> lock(client.getMultiLock(
                    IntStream.range(0, 3).mapToObj(i -> client.getLock(key + ":" + i)).toArray(RLock[]::new)));
            case "redlock" -> lock(
                    new RedissonRedLock(Stream.of(servers).map(s -> s.getLock(key)).toArray(RLock[]::new)));
            case "permit semaphore" -> permit(client.getPermitExpirableSemaphore(key), r.number("permits"));
            case "semaphore" -> semaphore(client.getSemaphore(key), r.number("permits"));
            case "latch" -> new Barrier(client, key, r.number("parties"), r.millis("to", 0));
            default -> throw new IllegalArgumentException("kind " + r.text("kind"));
        };
    }

    private static Turn lock(RLock lock) {
        return new Turn() {
            @Override
            public void acquire() {
                lock.lock();
            }

            @Override
            public void release() {
                lock.unlock();
            }
        };
    }

    private static Turn semaphore(RSemaphore semaphore, int permits) {
        semaphore.trySetPermits(permits);
        return new Turn() {
            @Override
            public void acquire() throws Exception {
                semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.release();
            }
        };
    }

    private static Turn permit(RPermitExpirableSemaphore semaphore, int permits) {
        semaphore.trySetPermits(permits);
        return new Turn() {
            private String id;

            @Override
            public void acquire() throws Exception {
                id = semaphore.acquire();
            }

            @Override
            public void release() {
                semaphore.release(id);
            }
        };
    }

    /** Reads, and writes in every eighth turn. */
    private static final class ReadWrite implements Turn {
        private final RLock read;
        private final RLock write;
        private int turn;

        ReadWrite(RLock read, RLock write, int caller) {
            this.read = read;
            this.write = write;
            turn = caller; // so that not all write at the same time
        }

        @Override
        public void acquire() {
            lock().lock();
        }

        @Override
        public void release() {
            lock().unlock();
            turn++;
        }

        private RLock lock() {
            return turn % WRITES == 0 ? write : read;
        }
    }

    /**
     * All parties count a latch down, wait until it opens, and continue with the next latch. After the
     * end no party waits: later parties open the latch for a party that began before the end.
     */
    private static final class Barrier implements Turn {
        private final RedissonClient client;
        private final String key;
        private final int parties;
        private final long end;
        private int round;

        Barrier(RedissonClient client, String key, int parties, long end) {
            this.client = client;
            this.key = key;
            this.parties = parties;
            this.end = end;
        }

        @Override
        public void acquire() throws Exception {
            boolean over = System.currentTimeMillis() > end;
            var latch = client.getCountDownLatch(key + ":" + round++);
            latch.trySetCount(parties);
            latch.countDown();
            if (!over) {
                latch.await();
            }
        }

        @Override
        public void release() {
            // the latch no longer exists
        }
    }
}
