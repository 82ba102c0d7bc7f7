package interop;

import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;

/**
 * One line of input: "id thread verb name=value …". Values are URL-encoded; lists are
 * separated by commas.
 */
record Request(String id, String thread, String verb, Map<String, String> args) {

    static Request parse(String line) {
        String[] words = line.split(" ");
        var args = new HashMap<String, String>();
        for (int i = 3; i < words.length; i++) {
            String[] pair = words[i].split("=", 2);
            args.put(pair[0], pair[1]);
        }
        return new Request(words[0], words[1], words[2], args);
    }

    static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static String decode(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }

    boolean has(String name) {
        return args.containsKey(name);
    }

    String text(String name) {
        if (!has(name)) {
            throw new IllegalArgumentException(verb + " needs " + name);
        }
        return decode(args.get(name));
    }

    String text(String name, String otherwise) {
        return has(name) ? text(name) : otherwise;
    }

    String[] list(String name) {
        text(name); // it is required
        return Stream.of(args.get(name).split(",")).map(Request::decode).toArray(String[]::new);
    }

    int number(String name) {
        return Integer.parseInt(text(name));
    }

    /** Returns a time in milliseconds. */
    long millis(String name, long otherwise) {
        return has(name) ? Long.parseLong(text(name)) : otherwise;
    }
}
