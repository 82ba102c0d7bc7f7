package interop;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.stream.Stream;

/** A setting of Redisson's configuration that not every version has, or has with another type. */
record Setting(Object target, Method setter) {

    static Setting of(Object target, String name) {
        Method setter = Stream.of(target.getClass().getMethods())
                .filter(m -> m.getName().equals(name) && m.getParameterCount() == 1)
                .findFirst()
                .orElseThrow(() -> new UnsupportedOperationException("this version of Redisson has no " + name));
        return new Setting(target, setter);
    }

    /** Sets it: an enum by its name, an interface by a handler of its methods, all else as it is. */
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

    /** A name mapper, which is of one package in 3.x and of another in 4.x. */
    static InvocationHandler prefixing(String prefix) {
        return (mapper, method, args) -> switch (method.getName()) {
            case "map" -> prefix + args[0];
            case "unmap" -> ((String) args[0]).substring(prefix.length());
            default -> throw new UnsupportedOperationException(method.getName());
        };
    }
}
