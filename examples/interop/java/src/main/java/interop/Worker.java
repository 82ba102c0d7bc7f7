package interop;

import java.util.Arrays;
import java.util.concurrent.LinkedBlockingQueue;

/** A logical thread: a Java thread that executes its requests in order. */
final class Worker {
    private final LinkedBlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();
    private final Thread thread;
    private volatile boolean ended;
    private volatile Request current; // null between requests

    Worker(String name) {
        thread = new Thread(this::work, name);
        thread.setDaemon(true);
        thread.start();
    }

    void submit(Request request, Runnable job) {
        jobs.add(() -> {
            current = request;
            job.run();
            current = null;
        });
    }

    /**
     * Reports whether the thread sleeps in Redisson's semaphore because the lock with this key is taken. A mapper may put
     * a prefix before the name.
     */
    boolean sleepsFor(String key) {
        var request = current;
        return request != null && request.has("names") && Arrays.stream(request.list("names")).anyMatch(key::endsWith)
            && Arrays.stream(thread.getStackTrace()).anyMatch(frame -> frame.getClassName().equals("java.util.concurrent.Semaphore"));
    }

    /** Interrupts the wait of the thread. */
    String interrupt() {
        thread.interrupt();
        return "";
    }

    /** Ends the thread after its current wait. */
    String end() {
        ended = true;
        return interrupt();
    }

    private void work() {
        while (!ended) {
            try {
                jobs.take().run();
            } catch (InterruptedException e) {
                // The interrupt came while the thread was idle: continue.
            }
        }
    }
}
