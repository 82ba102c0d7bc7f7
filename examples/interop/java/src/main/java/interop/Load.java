package interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.stream.Collectors;

/**
 * Callers that take turns as fast as they can between two times of the wall clock, each in a separate
 * thread. A benchmark measures the number of turns and the waits.
 */
final class Load {
    private final Turns turns;

    Load(Clients clients) {
        turns = new Turns(clients);
    }

    /** Answers in JSON: the number of turns, and how often each wait in microseconds occurred. */
    String run(Request r) throws Exception {
        int callers = r.number("callers");
        List<Callable<Caller>> all = new ArrayList<>();
        for (int i = 0; i < callers; i++) {
            var caller = new Caller(turns.of(r, i), r.millis("from", 0), r.millis("to", 0));
            all.add(() -> caller.run());
        }
        ExecutorService threads = Executors.newFixedThreadPool(callers);
        try {
            return sum(threads.invokeAll(all));
        } finally {
            threads.shutdown();
        }
    }

    private static String sum(List<Future<Caller>> callers) throws Exception {
        long turns = 0;
        Map<Long, Integer> waits = new TreeMap<>();
        for (Future<Caller> one : callers) {
            Caller caller = one.get();
            turns += caller.turns;
            caller.waits.forEach(wait -> waits.merge(rounded(wait), 1, Integer::sum));
        }
        String counts = waits.entrySet().stream()
                .map(e -> "\"" + e.getKey() + "\":" + e.getValue())
                .collect(Collectors.joining(","));
        return "{\"Turns\":" + turns + ",\"Waits\":{" + counts + "}}";
    }

    /** Returns microseconds with three significant digits. */
    private static long rounded(long nanos) {
        long digits = nanos / 1_000, scale = 1;
        for (; digits >= 1_000; digits /= 10) {
            scale *= 10;
        }
        return digits * scale;
    }

    /**
     * Runs a caller. Its last turn begins after the end and is not counted; other callers may need it to end
     * their turns. A turn that ends after the end is not counted either, but its wait is.
     */
    private static final class Caller {
        private final List<Turns.Turn> turn;
        private final long from;
        private final long to;
        private final List<Long> waits = new ArrayList<>();
        private long turns;

        Caller(List<Turns.Turn> turn, long from, long to) {
            this.turn = turn;
            this.from = from;
            this.to = to;
        }

        Caller run() throws Exception {
            MILLISECONDS.sleep(from - System.currentTimeMillis());
            for (int n = 0; ; n++) {
                Turns.Turn next = turn.get(n % turn.size());
                boolean last = System.currentTimeMillis() > to;
                long asked = System.nanoTime();
                next.acquire();
                long wait = System.nanoTime() - asked;
                next.release();
                if (last) {
                    return this;
                }
                waits.add(wait);
                if (System.currentTimeMillis() <= to) {
                    turns++;
                }
            }
        }
    }
}
