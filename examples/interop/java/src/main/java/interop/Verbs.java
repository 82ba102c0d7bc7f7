package interop;

import java.io.File;
import org.redisson.Redisson;

/** Executes requests by their verb: "open", "load", or the family of an object and a method, such as "lock.unlock". */
final class Verbs {
    private final Clients clients;
    private final Locks locks;
    private final Semaphores semaphores;
    private final Permits permits;
    private final Latches latches;
    private final Load load;

    Verbs(Clients clients) {
        this.clients = clients;
        locks = new Locks(clients);
        semaphores = new Semaphores(clients);
        permits = new Permits(clients);
        latches = new Latches(clients);
        load = new Load(clients);
    }

    String run(Request r) throws Exception {
        String[] words = r.verb().split("\\.", 2);
        if (words.length == 1) {
            return process(r);
        }
        return switch (words[0]) {
            case "lock" -> locks.run(words[1], r);
            case "semaphore" -> semaphores.run(words[1], r);
            case "permits" -> permits.run(words[1], r);
            case "latch" -> latches.run(words[1], r);
            default -> throw unknown(r);
        };
    }

    private String process(Request r) throws Exception {
        return switch (r.verb()) {
            case "jar" -> jar();
            case "open" -> clients.open(r);
            case "close" -> clients.close(r);
            case "load" -> load.run(r);
            case "field" -> clients.get(r.text("client")).getId() + ":" + Thread.currentThread().getId();
            default -> throw unknown(r);
        };
    }

    static IllegalArgumentException unknown(Request r) {
        return new IllegalArgumentException("no verb " + r.verb());
    }

    /** Returns the file from which Redisson was loaded. Its name has the version. */
    private static String jar() throws Exception {
        return new File(Redisson.class.getProtectionDomain().getCodeSource().getLocation().toURI()).getName();
    }
}
