package interop;

import java.util.concurrent.LinkedBlockingQueue;

/** A logical thread: a Java thread that executes its requests in order. */
final class Worker {
    private final LinkedBlockingQueue<Runnable> jobs = new LinkedBlockingQueue<>();
    private final Thread thread;
    private volatile boolean ended;

    Worker(String name) {
        thread = new Thread(this::work, name);
        thread.setDaemon(true);
        thread.start();
    }

    void submit(Runnable job) {
        jobs.add(job);
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
