package interop;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;

/** The Redisson clients of this process, by their names in requests. */
final class Clients {
    private static final int IDLE = 4; // idle connections; the default of 24 per node starts slowly
    private static final int POOL = 64;

    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();

    RedissonClient get(String name) {
        RedissonClient client = clients.get(name);
        if (client == null) {
            throw new IllegalArgumentException("no client " + name);
        }
        return client;
    }

    /** Opens a client and answers its id, which begins the fields of its holders. */
    String open(Request r) throws Exception {
        RedissonClient client = Redisson.create(config(r));
        clients.put(r.text("client"), client);
        return client.getId();
    }

    String close(Request r) {
        clients.remove(r.text("client")).shutdown();
        return "";
    }

    private static Config config(Request r) throws Exception {
        var config = new Config();
        if (!usual(r)) {
            config.setThreads(4).setNettyThreads(4);
        }
        if (r.has("watchdog")) {
            config.setLockWatchdogTimeout(r.millis("watchdog", 0));
        }
        if (r.has("fairWait")) {
            Setting.of(config, "setFairLockWaitTimeout").set(r.millis("fairWait", 0));
        }
        if (r.has("strings")) {
            config.setCodec(StringCodec.INSTANCE);
        }
        servers(config, r);
        return config;
    }

    /** Reports whether the client uses Redisson's default numbers of threads and connections, which are large. */
    private static boolean usual(Request r) {
        return r.has("usual");
    }

    private static void servers(Config config, Request r) throws Exception {
        String[] addresses = Stream.of(r.list("addrs")).map(a -> "redis://" + a).toArray(String[]::new);
        switch (r.text("mode")) {
            case "single" -> {
                var single = config.useSingleServer().setAddress(addresses[0]);
                if (!usual(r)) {
                    single.setConnectionMinimumIdleSize(IDLE).setConnectionPoolSize(POOL);
                }
                common(single, r);
            }
            case "cluster" -> {
                var cluster = pooled(config.useClusterServers()).addNodeAddress(addresses);
                if (r.has("sharded")) {
                    Setting.of(cluster, "setShardedSubscriptionMode").set(r.text("sharded"));
                }
                if (r.has("database")) {
                    Setting.of(cluster, "setDatabase").set(r.number("database"));
                }
                common(cluster, r);
            }
            case "sentinel" -> {
                var sentinel = pooled(config.useSentinelServers()).setMasterName(r.text("master"))
                        .addSentinelAddress(addresses).setCheckSentinelsList(false);
                common(sentinel, r);
            }
            default -> throw new IllegalArgumentException("mode " + r.text("mode"));
        }
    }

    private static <T extends BaseMasterSlaveServersConfig<T>> T pooled(T servers) {
        return servers.setMasterConnectionMinimumIdleSize(IDLE).setMasterConnectionPoolSize(POOL)
                .setSlaveConnectionMinimumIdleSize(1).setSlaveConnectionPoolSize(POOL);
    }

    private static void common(BaseConfig<?> servers, Request r) throws Exception {
        if (r.has("timeout")) {
            servers.setTimeout((int) r.millis("timeout", 0));
        }
        if (r.has("retries")) {
            servers.setRetryAttempts(r.number("retries"));
        }
        if (r.has("prefix")) {
            Setting.of(servers, "setNameMapper").set(Setting.prefixing(r.text("prefix")));
        }
    }
}
