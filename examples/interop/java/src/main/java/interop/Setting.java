package interop;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.stream.Stream;

/** A setting of Redisson's configuration that some versions lack or have with another type. */
record Setting(Object target, Method setter) {

    static Setting of(Object target, String name) {
        Method setter = Stream.of(target.getClass().getMethods())
                .filter(m -> m.getName().equals(name) && m.getParameterCount() == 1)
                .findFirst()
                .orElseThrow(() -> new UnsupportedOperationException("this version of Redisson has no " + name));
        return new Setting(target, setter);
    }

    /** Sets the value: an enum by its name, an interface by a handler of its methods, other types directly. */
    @SuppressWarnings({"unchecked", "rawtypes"})
    void set(Object value) throws Exception {
        Class<?> type = setter.getParameterTypes()[0];
        if (type.isEnum()) {
            value = Enum.valueOf((Class<Enum>) type, (String) value);
        } else if (value instanceof InvocationHandler handler) {
            value = Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler);
        }
        setter.invoke(target, value);
    }

    /** Sets a name mapper, whose package differs between 3.x and 4.x. */
    static InvocationHandler prefixing(String prefix) {
        return (mapper, method, args) -> switch (method.getName()) {
            case "map" -> prefix + args[0];
            case "unmap" -> ((String) args[0]).substring(prefix.length());
            default -> throw new UnsupportedOperationException(method.getName());
        };
    }
}
