package interop;

import java.util.concurrent.LinkedBlockingQueue;

/** One logical thread: a Java thread that carries out what it is given in order. */
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

    /** Interrupts what the thread waits in. */
    String interrupt() {
        thread.interrupt();
        return "";
    }

    /** Ends the thread, once it has left what it waits in. */
    String end() {
        ended = true;
        return interrupt();
    }

    private void work() {
        while (!ended) {
            try {
                jobs.take().run();
            } catch (InterruptedException e) {
                // It came when the thread had nothing to do: work goes on.
            }
        }
    }
}
