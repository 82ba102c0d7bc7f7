package methodrules

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/interlock-go/interlock/failpolicy"
)

// find returns the descriptor with a name, or the zero value if no descriptor of type D has it.
func find[D protoreflect.Descriptor](c *Config, name protoreflect.FullName) (found D) {
	if !name.IsValid() {
		return found
	}
	for _, r := range c.descriptors {
		if d, err := r.FindDescriptorByName(name); err == nil {
			if found, ok := d.(D); ok {
				return found
			}
		}
	}
	d, _ := protoregistry.GlobalFiles.FindDescriptorByName(name) //nolint:errcheck // nil is a valid result
	found, _ = d.(D)                                             //nolint:errcheck // nil is a valid result
	return found
}

// describe returns the descriptor of a full method, or nil if none is known.
func (c *Config) describe(fullMethod string) protoreflect.MethodDescriptor {
	name := strings.ReplaceAll(strings.TrimPrefix(fullMethod, "/"), "/", ".")
	return find[protoreflect.MethodDescriptor](c, protoreflect.FullName(name))
}

// Keys returns the keys of all methods of a service, for example "shop.v1.Orders" or
// "/shop.v1.Orders/", or the key of one full method.
func (c *Config) Keys(name string) ([]Key, error) {
	name = strings.Trim(name, "/")
	if strings.Contains(name, "/") {
		if d := c.describe(name); d != nil {
			return []Key{{"/" + name, shapeOf(d)}}, nil
		}
		return []Key{{"/" + name, Unregistered()}}, nil
	}
	service := find[protoreflect.ServiceDescriptor](c, protoreflect.FullName(name))
	if service == nil {
		advice := "write its full name, which begins with the package of the .proto file, such as shop.v1.Orders; and import its generated package, or give its file to WithDescriptors"
		if near := nearestService(name); near != "" {
			advice = fmt.Sprintf("did you mean %q? A full name begins with the package of the .proto file", near)
		}
		return nil, fmt.Errorf("Check: no service %q is registered: %s", name, advice)
	}
	keys := make([]Key, service.Methods().Len())
	for i := range keys {
		d := service.Methods().Get(i)
		keys[i] = Key{fmt.Sprintf("/%s/%s", name, d.Name()), shapeOf(d)}
	}
	return keys, nil
}

// nearestService returns the full name of the service of the program that the caller probably meant,
// or "".
func nearestService(name string) string {
	var names []string
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		for i := range f.Services().Len() {
			names = append(names, string(f.Services().Get(i).FullName()))
		}
		return true
	})
	slices.Sort(names)
	if i := slices.IndexFunc(names, func(full string) bool { return strings.HasSuffix(full, "."+name) }); i >= 0 {
		return names[i]
	}
	return failpolicy.Nearest(name, names)
}
