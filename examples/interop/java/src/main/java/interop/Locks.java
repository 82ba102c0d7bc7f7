package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.Collection;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.redisson.RedissonRedLock;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/** Verbs of all kinds of RLock. The kind is an argument, and the calling thread is the holder. */
final class Locks {
    private final Clients clients;

    Locks(Clients clients) {
        this.clients = clients;
    }

    String run(String verb, Request r) throws Exception {
        RLock lock = find(r);
        return switch (verb) {
            case "lock" -> lock(lock, r);
            case "lockInterruptibly" -> lockInterruptibly(lock, r);
            case "tryLock" -> String.valueOf(tryLock(lock, r));
            case "unlock" -> unlock(lock);
            case "forceUnlock" -> String.valueOf(lock.forceUnlock());
            case "isLocked" -> String.valueOf(lock.isLocked());
            case "isHeld" -> String.valueOf(lock.isHeldByCurrentThread());
            case "holdCount" -> String.valueOf(lock.getHoldCount());
            case "ttl" -> String.valueOf(lock.remainTimeToLive());
            case "lockAndGetToken" -> String.valueOf(((RFencedLock) lock).lockAndGetToken());
            case "tryLockAndGetToken" -> tryToken((RFencedLock) lock, r);
            case "getToken" -> String.valueOf(((RFencedLock) lock).getToken());
            default -> throw Verbs.unknown(r);
        };
    }

    /**
     * Returns the lock of a request. A redlock has one name per client, or one name for all clients. All other
     * kinds have one client. A multi lock has several names, and a group lock a group and its values.
     */
    private RLock find(Request r) {
        String[] names = r.list("names");
        if (r.text("kind").equals("redlock")) {
            String[] servers = r.list("client");
            return new RedissonRedLock(IntStream.range(0, servers.length)
                    .mapToObj(i -> clients.get(servers[i]).getLock(names[i % names.length]))
                    .toArray(RLock[]::new));
        }
        var client = clients.get(r.text("client"));
        String name = names[0];
        return switch (r.text("kind")) {
            case "lock" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "spin" -> client.getSpinLock(name);
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            case "multi" -> client.getMultiLock(Stream.of(names).map(client::getLock).toArray(RLock[]::new));
            case "nonreentrant" -> newer(client, "getNonReentrantLock", new Class<?>[] {String.class}, name);
            case "nonreentrantfair" -> newer(client, "getNonReentrantFairLock", new Class<?>[] {String.class}, name);
            case "group" -> newer(client, "getMultiLock", new Class<?>[] {String.class, Collection.class},
                    name, List.of(names).subList(1, names.length));
            default -> throw new IllegalArgumentException("kind " + r.text("kind"));
        };
    }

    /** Calls a method of the client that older versions do not have. */
    private static RLock newer(RedissonClient client, String method, Class<?>[] types, Object... args) {
        try {
            return (RLock) RedissonClient.class.getMethod(method, types).invoke(client, args);
        } catch (ReflectiveOperationException e) {
            throw new UnsupportedOperationException("this version of Redisson has no " + method, e);
        }
    }

    private static String lock(RLock lock, Request r) {
        if (r.has("lease")) {
            lock.lock(r.millis("lease", 0), MILLISECONDS);
        } else {
            lock.lock();
        }
        return "";
    }

    private static String lockInterruptibly(RLock lock, Request r) throws InterruptedException {
        lock.lockInterruptibly(r.millis("lease", -1), MILLISECONDS);
        return "";
    }

    /** Without a wait and a lease it calls the form without arguments, which makes a single attempt. */
    private static boolean tryLock(RLock lock, Request r) throws InterruptedException {
        if (!r.has("wait") && !r.has("lease")) {
            return lock.tryLock();
        }
        return lock.tryLock(r.millis("wait", 0), r.millis("lease", -1), MILLISECONDS);
    }

    /** Returns the token, or an empty text. */
    private static String tryToken(RFencedLock lock, Request r) {
        Long token = lock.tryLockAndGetToken(r.millis("wait", 0), r.millis("lease", -1), MILLISECONDS);
        return token == null ? "" : token.toString();
    }

    private static String unlock(RLock lock) {
        lock.unlock();
        return "";
    }
}
