package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import org.redisson.api.RCountDownLatch;

/** Verbs of RCountDownLatch. */
final class Latches {
    private final Clients clients;

    Latches(Clients clients) {
        this.clients = clients;
    }

    String run(String verb, Request r) throws Exception {
        RCountDownLatch latch = clients.get(r.text("client")).getCountDownLatch(r.text("name"));
        return switch (verb) {
            case "trySetCount" -> String.valueOf(latch.trySetCount(r.number("count")));
            case "countDown" -> countDown(latch);
            case "getCount" -> String.valueOf(latch.getCount());
            case "delete" -> String.valueOf(latch.delete());
            case "await" -> String.valueOf(await(latch, r));
            default -> throw Verbs.unknown(r);
        };
    }

    private static String countDown(RCountDownLatch latch) {
        latch.countDown();
        return "";
    }

    /** Reports whether the latch opened within the wait. Without a wait it waits until the latch opens. */
    private static boolean await(RCountDownLatch latch, Request r) throws InterruptedException {
        if (r.has("wait")) {
            return latch.await(r.millis("wait", 0), MILLISECONDS);
        }
        latch.await();
        return true;
    }
}
