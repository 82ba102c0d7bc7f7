package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RSemaphore;

/** Verbs of RSemaphore: permits without owners. */
final class Semaphores {
    private final Clients clients;

    Semaphores(Clients clients) {
        this.clients = clients;
    }

    String run(String verb, Request r) throws Exception {
        RSemaphore semaphore = clients.get(r.text("client")).getSemaphore(r.text("name"));
        switch (verb) {
            case "acquire" -> semaphore.acquire(r.number("permits"));
            case "release" -> semaphore.release(r.number("permits"));
            case "addPermits" -> semaphore.addPermits(r.number("permits"));
            default -> {
                return ask(verb, semaphore, r);
            }
        }
        return "";
    }

    private static String ask(String verb, RSemaphore semaphore, Request r) throws Exception {
        return switch (verb) {
            case "tryAcquire" -> String.valueOf(tryAcquire(semaphore, r));
            case "trySetPermits" -> String.valueOf(semaphore.trySetPermits(r.number("permits")));
            case "drainPermits" -> String.valueOf(semaphore.drainPermits());
            case "availablePermits" -> String.valueOf(semaphore.availablePermits());
            default -> throw Verbs.unknown(r);
        };
    }

    private static boolean tryAcquire(RSemaphore semaphore, Request r) throws InterruptedException {
        int permits = r.number("permits");
        return r.has("wait")
                ? semaphore.tryAcquire(permits, r.millis("wait", 0), MILLISECONDS)
                : semaphore.tryAcquire(permits);
    }
}
