package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RPermitExpirableSemaphore;

/** Verbs of RPermitExpirableSemaphore: permits with ids and leases. An id is a text of 32 hexadecimal digits. */
final class Permits {
    private final Clients clients;

    Permits(Clients clients) {
        this.clients = clients;
    }

    String run(String verb, Request r) throws Exception {
        RPermitExpirableSemaphore semaphore =
                clients.get(r.text("client")).getPermitExpirableSemaphore(r.text("name"));
        switch (verb) {
            case "release" -> semaphore.release(r.text("id"));
            case "addPermits" -> semaphore.addPermits(r.number("permits"));
            case "setPermits" -> semaphore.setPermits(r.number("permits"));
            default -> {
                return ask(verb, semaphore, r);
            }
        }
        return "";
    }

    private static String ask(String verb, RPermitExpirableSemaphore semaphore, Request r) throws Exception {
        return switch (verb) {
            case "acquire" -> acquire(semaphore, r);
            case "tryAcquire" -> tryAcquire(semaphore, r);
            case "tryRelease" -> String.valueOf(semaphore.tryRelease(r.text("id")));
            case "updateLeaseTime" -> String.valueOf(
                    semaphore.updateLeaseTime(r.text("id"), r.millis("lease", -1), MILLISECONDS));
            case "trySetPermits" -> String.valueOf(semaphore.trySetPermits(r.number("permits")));
            case "availablePermits" -> String.valueOf(semaphore.availablePermits());
            case "acquiredPermits" -> String.valueOf(semaphore.acquiredPermits());
            case "getPermits" -> String.valueOf(semaphore.getPermits());
            default -> throw Verbs.unknown(r);
        };
    }

    private static String acquire(RPermitExpirableSemaphore semaphore, Request r) throws InterruptedException {
        return r.has("lease") ? semaphore.acquire(r.millis("lease", 0), MILLISECONDS) : semaphore.acquire();
    }

    /** Returns the id, or an empty text. */
    private static String tryAcquire(RPermitExpirableSemaphore semaphore, Request r) throws InterruptedException {
        String id = semaphore.tryAcquire(r.millis("wait", 0), r.millis("lease", -1), MILLISECONDS);
        return id == null ? "" : id;
    }
}
