package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Reads requests from standard input, one per line, and answers each on standard output. One Java thread
 * executes the requests of one logical thread in order, because Redisson identifies a holder by its thread.
 * Requests of different threads run at the same time. The process ends with its input.
 */
public final class Main {
    private static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);

    private final Map<String, Worker> workers = new ConcurrentHashMap<>();
    private final Verbs verbs = new Verbs(new Clients());

    public static void main(String[] args) throws Exception {
        new Main().serve();
        Runtime.getRuntime().halt(0); // threads that wait for a lock would never end
    }

    private void serve() throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            var request = Request.parse(line);
            switch (request.verb()) {
                // These concern a thread that may be blocked.
                case "interrupt" -> answer(request, () -> worker(request).interrupt());
                case "end" -> answer(request, () -> workers.remove(request.thread()).end());
                case "sleeps" -> answer(request, () -> sleeps(request.text("key")));
                default -> worker(request).submit(request, () -> answer(request, () -> verbs.run(request)));
            }
        }
    }

    /** Reports whether a thread that waits for the lock with this key sleeps until a message or the end of a lease. */
    private String sleeps(String key) {
        return String.valueOf(workers.values().stream().anyMatch(worker -> worker.sleepsFor(key)));
    }

    private Worker worker(Request request) {
        return workers.computeIfAbsent(request.thread(), Worker::new);
    }

    /** The work of a request. Its result is the text of the answer. */
    interface Action {
        String run() throws Exception;
    }

    private static void answer(Request request, Action action) {
        long from = now();
        String outcome;
        try {
            String result = action.run();
            outcome = stamp("ok", from) + " " + Request.encode(result);
        } catch (Throwable e) { // the Error of a missing method is an answer too
            outcome = stamp("error", from) + " " + Request.encode(e.getClass().getSimpleName() + ": " + e.getMessage());
        }
        OUT.println(request.id() + " " + outcome);
    }

    private static String stamp(String word, long from) {
        return word + " " + from + " " + now();
    }

    /** Returns microseconds of the wall clock, which all processes of this machine share. */
    private static long now() {
        var t = java.time.Instant.now();
        return t.getEpochSecond() * 1_000_000 + t.getNano() / 1_000;
    }
}
